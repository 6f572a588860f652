//! Why a request to an adapter in this process failed.

use std::fmt;

use tether_cdp::CdpError;
use tether_jdwp::JdwpError;

/// Why a request failed, for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFailure(pub String);

impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<JdwpError> for RequestFailure {
    fn from(error: JdwpError) -> Self {
        RequestFailure(error.to_string())
    }
}

impl From<CdpError> for RequestFailure {
    fn from(error: CdpError) -> Self {
        match error {
            // The engine's own words.
            CdpError::ErrorResponse { message, .. } => RequestFailure(message),
            other => RequestFailure(other.to_string()),
        }
    }
}

impl From<String> for RequestFailure {
    fn from(text: String) -> Self {
        RequestFailure(text)
    }
}

impl From<&str> for RequestFailure {
    fn from(text: &str) -> Self {
        RequestFailure(text.to_owned())
    }
}
