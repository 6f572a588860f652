//! Names and shapes of the requests, answers and events that we use; nothing else of the protocol.
//!
//! Field names are the protocol's own. Fields that may be missing are read as empty, also where a peer sends `null`;
//! empty ones are not sent. Unknown ones are passed over: whoever passes a message on takes its raw body.
//!
//! <https://microsoft.github.io/debug-adapter-protocol/specification>

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

mod events;
mod requests;
mod shapes;
#[cfg(test)]
mod tests;

pub use events::*;
pub use requests::*;
pub use shapes::*;

/// A request of the protocol: its arguments are the implementing type, its command and answer are named here.
pub trait DapRequest: Serialize {
    const COMMAND: &'static str;
    type Response: DeserializeOwned;
}

/// An answer without anything to read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmptyResponse {}

/// Arguments or data whose fields are somebody else's.
pub type Fields = Map<String, Value>;

/// What is not there, or `null`, is the empty value.
fn or_empty<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(reader: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(reader)?.unwrap_or_default())
}

fn is_empty<T: Default + PartialEq>(value: &T) -> bool {
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
                    deserialize_with = "crate::dap::types::or_empty",
                    skip_serializing_if = "crate::dap::types::is_empty"
                )]
                pub $may: $may_type,
            )*
        }
    };
}

/// A shape that is a request's arguments.
macro_rules! request {
    ($(#[$doc:meta])* $name:ident, $command:literal -> $response:ty, $fields:tt) => {
        crate::dap::types::shape!($(#[$doc])* $name $fields);
        impl crate::dap::types::DapRequest for $name {
            const COMMAND: &'static str = $command;
            type Response = $response;
        }
    };
}

use {request, shape};
