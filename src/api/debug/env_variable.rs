//! A variable of a program's environment: `NAME=VALUE` on the command line; on the wire, all variables are one object, as
//! in launch.json: `{"NAME": "value", "OTHER": null}`.

use std::collections::BTreeMap;
use std::str::FromStr;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serializer};

/// A variable to set, or without a value, to remove from the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvVariable {
    pub name: String,
    pub value: Option<String>,
}

impl FromStr for EnvVariable {
    type Err = String;

    fn from_str(text: &str) -> Result<EnvVariable, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                Ok(EnvVariable { name: name.to_owned(), value: Some(value.to_owned()) })
            }
            _ => Err(format!("{text:?} is not NAME=VALUE")),
        }
    }
}

/// Serialises variables as one object.
pub(super) fn serialize<S: Serializer>(variables: &[EnvVariable], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(variables.iter().map(|it| (&it.name, &it.value)))
}

/// Reads what [`serialize`] writes.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<EnvVariable>, D::Error> {
    let object = BTreeMap::<String, Option<String>>::deserialize(deserializer)?;
    Ok(object.into_iter().map(|(name, value)| EnvVariable { name, value }).collect())
}

/// The schema of the object: no more than its type, to keep the tool's description short.
pub(super) fn object_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}
