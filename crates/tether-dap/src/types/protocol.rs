//! How messages are declared: the traits of requests and events, and the macros that define their structs.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A request: the implementing type is its arguments.
pub trait DapRequest: Serialize {
    /// The protocol's name of the request.
    const COMMAND: &'static str;
    /// The body of its response.
    type Response: DeserializeOwned;
}

/// The body of an event.
pub trait DapEvent: Serialize + DeserializeOwned {
    /// The protocol's name of the event.
    const EVENT: &'static str;
}

/// The body of a response that has none, or none that is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmptyResponse {}

/// Arguments or data whose fields the adapter defines.
pub type Fields = Map<String, Value>;

/// Sets a field of an object; any other value stays as it is.
pub fn set_field(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = object {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Parses a missing field, or `null`, as the empty value.
pub(super) fn or_empty<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(reader: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(reader)?.unwrap_or_default())
}

pub(super) fn is_empty<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A struct of the protocol: required fields before the `;`, optional ones after it. Without a `;`, all are optional.
macro_rules! shape {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$must_doc:meta])* $must:ident: $must_type:ty),*;
        $($(#[$may_doc:meta])* $may:ident: $may_type:ty),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $($(#[$must_doc])* pub $must: $must_type,)*
            $(
                $(#[$may_doc])*
                #[serde(
                    default,
                    deserialize_with = "crate::types::protocol::or_empty",
                    skip_serializing_if = "crate::types::protocol::is_empty"
                )]
                pub $may: $may_type,
            )*
        }
    };
    ($(#[$doc:meta])* $name:ident { $($optional:tt)* }) => {
        crate::types::protocol::shape!($(#[$doc])* $name { ; $($optional)* });
    };
}

/// A struct that is a request's arguments.
macro_rules! request {
    ($(#[$doc:meta])* $name:ident, $command:literal -> $response:ty, $fields:tt) => {
        crate::types::protocol::shape!($(#[$doc])* $name $fields);
        impl crate::types::protocol::DapRequest for $name {
            const COMMAND: &'static str = $command;
            type Response = $response;
        }
    };
}

pub(super) use {request, shape};
