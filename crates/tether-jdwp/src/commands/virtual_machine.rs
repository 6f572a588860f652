//! The commands of the VirtualMachine command set (1).

// Names and fields are those of the specification.
#![allow(missing_docs)]

use super::{command, reply};
use crate::values::{ObjectId, ReferenceTypeId};

command!(
    /// The versions of the virtual machine.
    Version, "VirtualMachine.Version", 1, 1, {} -> VmVersion
);
reply!(
    /// What a virtual machine is.
    VmVersion { description: String, jdwp_major: i32, jdwp_minor: i32, vm_version: String, vm_name: String }
);

command!(
    /// The loaded classes of one name; each class loader may have one.
    ClassesBySignature, "VirtualMachine.ClassesBySignature", 1, 2, { signature: String } -> Vec<LoadedClass>
);
reply!(
    /// A loaded class.
    LoadedClass { type_tag: u8, class: ReferenceTypeId, status: i32 }
);

command!(
    /// All loaded classes, with their generic signatures (empty where there is none).
    AllClassesWithGeneric, "VirtualMachine.AllClassesWithGeneric", 1, 20, {} -> Vec<NamedClass>
);
reply!(
    /// A loaded class and its name.
    NamedClass { type_tag: u8, class: ReferenceTypeId, signature: String, generic: String, status: i32 }
);

command!(
    /// All running threads.
    AllThreads, "VirtualMachine.AllThreads", 1, 4, {} -> Vec<ObjectId>
);
command!(
    /// Ends the debugging: all requests for events are gone, all threads run.
    Dispose, "VirtualMachine.Dispose", 1, 6, {} -> ()
);
command!(
    /// The sizes of ids: of fields, methods, objects, reference types, frames.
    IdSizesOfVm, "VirtualMachine.IDSizes", 1, 7, {} -> IdSizesReply
);
reply!(
    /// In bytes.
    IdSizesReply { field: i32, method: i32, object: i32, reference_type: i32, frame: i32 }
);
command!(
    /// Suspends all threads, once more each.
    SuspendAll, "VirtualMachine.Suspend", 1, 8, {} -> ()
);
command!(
    /// Undoes one suspension of each thread.
    ResumeAll, "VirtualMachine.Resume", 1, 9, {} -> ()
);
command!(
    /// Ends the program with that exit code.
    Exit, "VirtualMachine.Exit", 1, 10, { exit_code: i32 } -> ()
);
command!(
    /// A new string. It may be collected at once: see ObjectReference.DisableCollection.
    CreateString, "VirtualMachine.CreateString", 1, 11, { text: String } -> ObjectId
);
command!(
    /// The folders and archives of the classes.
    ClassPaths, "VirtualMachine.ClassPaths", 1, 13, {} -> VmClassPaths
);
reply!(
    /// The folders are relative to `base`.
    VmClassPaths { base: String, class_path: Vec<String>, boot_class_path: Vec<String> }
);
command!(
    /// What the virtual machine can do.
    CapabilitiesNew, "VirtualMachine.CapabilitiesNew", 1, 17, {} -> VmCapabilities
);
reply!(
    /// The first 21 of 32; the others are reserved.
    VmCapabilities {
        watch_field_modification: bool,
        watch_field_access: bool,
        get_bytecodes: bool,
        get_synthetic_attribute: bool,
        get_owned_monitor_info: bool,
        get_current_contended_monitor: bool,
        get_monitor_info: bool,
        redefine_classes: bool,
        add_method: bool,
        unrestrictedly_redefine_classes: bool,
        pop_frames: bool,
        use_instance_filters: bool,
        get_source_debug_extension: bool,
        request_vm_death_event: bool,
        set_default_stratum: bool,
        get_instance_info: bool,
        request_monitor_events: bool,
        get_monitor_frame_info: bool,
        use_source_name_filters: bool,
        get_constant_pool: bool,
        force_early_return: bool,
    }
);
command!(
    /// Replaces the code of loaded classes.
    RedefineClasses, "VirtualMachine.RedefineClasses", 1, 18, { classes: Vec<(ReferenceTypeId, Vec<u8>)> } -> ()
);
