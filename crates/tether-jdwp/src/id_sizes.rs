//! How many bytes each kind of id has (JDWP: VirtualMachine command set (1), IDSizes (7)).

use super::jdwp_error::JdwpError;

/// The sizes of a virtual machine's ids, in bytes: each from 1 to 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdSizes {
    /// Of a [`FieldId`](crate::values::FieldId).
    pub field: usize,
    /// Of a [`MethodId`](crate::values::MethodId).
    pub method: usize,
    /// Of an [`ObjectId`](crate::values::ObjectId).
    pub object: usize,
    /// Of a [`ReferenceTypeId`](crate::values::ReferenceTypeId).
    pub reference_type: usize,
    /// Of a [`FrameId`](crate::values::FrameId).
    pub frame: usize,
}

impl IdSizes {
    /// The sizes as a virtual machine reports them. Errors: one of them is no size of an id.
    pub fn from_reply(sizes: [i32; 5]) -> Result<IdSizes, JdwpError> {
        let check = |size: i32| match usize::try_from(size) {
            Ok(size @ 1..=8) => Ok(size),
            _ => Err(JdwpError::Malformed(format!("an id of {size} bytes"))),
        };
        let [field, method, object, reference_type, frame] = sizes;
        Ok(IdSizes {
            field: check(field)?,
            method: check(method)?,
            object: check(object)?,
            reference_type: check(reference_type)?,
            frame: check(frame)?,
        })
    }
}

impl Default for IdSizes {
    /// What no command depends on that is sent before the sizes are known.
    fn default() -> Self {
        IdSizes { field: 8, method: 8, object: 8, reference_type: 8, frame: 8 }
    }
}
