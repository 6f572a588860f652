//! Removes the connection token of VS Code's server from the URLs that are recorded or shown: whoever reads it can use the
//! server as the user.
//!
//! The workbench puts it into the URLs of its own requests, and the server into the one that it prints, as the parameter `tkn`.

/// The parameter as it begins in a URL, and in a URL that is a parameter of another one.
const PARAMETERS: [&str; 4] = ["?tkn=", "&tkn=", "%3Ftkn%3D", "%26tkn%3D"];

/// The text with `…` for each value of the parameter.
pub fn redact_connection_tokens(mut text: String) -> String {
    for parameter in PARAMETERS {
        if !text.contains(parameter) {
            continue;
        }
        let mut parts = text.split(parameter);
        let before = parts.next().unwrap_or_default().to_owned();
        text = parts.fold(before, |out, part| out + parameter + "…" + part.trim_start_matches(is_token_character));
    }
    text
}

/// As VS Code's server accepts them.
fn is_token_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}
