//! How messages are declared: the traits of requests and events, and the macros that define their structs.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A request of the protocol: its arguments are the implementing type, its command and answer are named here.
pub trait DapRequest: Serialize {
    const COMMAND: &'static str;
    type Response: DeserializeOwned;
}

/// The body of an event.
pub trait DapEvent: Serialize + DeserializeOwned {
    const EVENT: &'static str;
}

/// An answer without anything to read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmptyResponse {}

/// Arguments or data whose fields are somebody else's.
pub type Fields = Map<String, Value>;

/// What is not there, or `null`, is the empty value.
pub(super) fn or_empty<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(reader: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(reader)?.unwrap_or_default())
}

pub(super) fn is_empty<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A shape: fields that the protocol wants, and fields that may be missing.
macro_rules! shape {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$must_doc:meta])* $must:ident: $must_type:ty,)*
        ;
        $($(#[$may_doc:meta])* $may:ident: $may_type:ty,)*
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
                    deserialize_with = "crate::dap::types::protocol::or_empty",
                    skip_serializing_if = "crate::dap::types::protocol::is_empty"
                )]
                pub $may: $may_type,
            )*
        }
    };
}

/// A shape that is a request's arguments.
macro_rules! request {
    ($(#[$doc:meta])* $name:ident, $command:literal -> $response:ty, $fields:tt) => {
        crate::dap::types::protocol::shape!($(#[$doc])* $name $fields);
        impl crate::dap::types::protocol::DapRequest for $name {
            const COMMAND: &'static str = $command;
            type Response = $response;
        }
    };
}

pub(super) use {request, shape};
