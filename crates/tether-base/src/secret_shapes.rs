//! Recognises secrets in the values of a program's variables: by the name of the variable or member (`password`, `apiKey`), and
//! by the shape of the text (keys of well-known services, JSON web tokens, private keys).
//!
//! A guess, to keep secrets out of what is shown without being asked for. Depends on nothing.

/// How names of secrets end, without separators and in lower case.
const SECRET_NAMES: [&str; 18] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secretkey",
    "privatekey",
    "apikey",
    "accesskey",
    "sessionkey",
    "accesstoken",
    "refreshtoken",
    "authtoken",
    "idtoken",
    "sessiontoken",
    "bearertoken",
    "credential",
    "credentials",
    "authorization",
];
/// How keys of well-known services begin, and how many more letters of keys they have at least.
const KEY_STARTS: [(&str, usize); 17] = [
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("github_pat_", 30),
    ("glpat-", 18),
    ("sk-", 24),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("npm_", 30),
    ("pypi-", 30),
    ("eyJ", 40),
];
/// A `token` is a secret from so many characters without a space on: shorter ones are those of a parser.
const MIN_TOKEN_CHARS: usize = 16;
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// The value of a variable with the secrets in it masked, as a debugger shows values: texts stand in quotes. `None`: there is none.
///
/// Masked are the whole text of a variable with the name of a secret, the text of such a member in the preview of an object, and
/// keys that are recognised by their shape wherever they stand.
pub fn mask_secrets(name: &str, value: &str) -> Option<String> {
    if let Some(text) = quoted_text(value)
        && is_secret(name, text)
    {
        return Some(masked(text));
    }
    if value.contains(PRIVATE_KEY) {
        return Some(masked(value));
    }
    let without_members = mask_members(value);
    let shown = without_members.as_deref().unwrap_or(value);
    mask_keys(shown).or(without_members)
}

fn masked(text: &str) -> String {
    format!("(masked, {} characters)", text.chars().count())
}

/// The text of a value that is one: `'x'`, `b"x"`, `0x5580 "x"`.
fn quoted_text(value: &str) -> Option<&str> {
    let value = value.trim_end();
    let quote = value.chars().next_back().filter(|it| ['\'', '"', '`'].contains(it))?;
    let (before, text) = value.strip_suffix(quote)?.split_once(quote)?;
    // What may stand before a text: an address, or the kind of its literal.
    before.chars().all(|it| it.is_ascii_alphanumeric() || it == ' ').then_some(text)
}

fn is_secret(name: &str, text: &str) -> bool {
    if text.is_empty() {
        return false;
    }
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).map(|it| it.to_ascii_lowercase()).collect();
    let is_token = || name.ends_with("token") && text.len() >= MIN_TOKEN_CHARS && !text.contains(char::is_whitespace);
    SECRET_NAMES.iter().any(|end| name.ends_with(end)) || is_token()
}

/// Masks the texts of members in a preview such as `{user: 'x', password: 'y'}`.
fn mask_members(value: &str) -> Option<String> {
    let (mut out, mut rest, mut is_changed) = (String::new(), value, false);
    while let Some(at) = rest.find([':', '=']) {
        let (before, after) = (&rest[..at], &rest[at.saturating_add(1)..]);
        let name = before.trim_end_matches(['"', '\'', ' ']);
        let is_end = |it: char| !it.is_ascii_alphanumeric() && it != '_' && it != '-';
        let name = name.rsplit(is_end).next().unwrap_or_default();
        let text_at = after.len() - after.trim_start().len();
        let text = after[text_at..].chars().next().filter(|it| ['\'', '"'].contains(it)).and_then(|quote| {
            let text = &after[text_at..][1..];
            Some(&text[..text.find(quote)?])
        });
        out.push_str(&rest[..at + 1]);
        match text.filter(|text| is_secret(name, text)) {
            Some(text) => {
                out.push_str(&after[..text_at]);
                out.push_str(&masked(text));
                rest = &after[text_at + text.len() + 2..];
                is_changed = true;
            }
            None => rest = after,
        }
    }
    out.push_str(rest);
    is_changed.then_some(out)
}

/// Masks keys of well-known services.
fn mask_keys(value: &str) -> Option<String> {
    let (mut out, mut rest, mut is_changed) = (String::new(), value, false);
    while let Some((at, length)) = find_key(rest) {
        out.push_str(&rest[..at]);
        out.push_str(&masked(&rest[at..at + length]));
        rest = &rest[at + length..];
        is_changed = true;
    }
    out.push_str(rest);
    is_changed.then_some(out)
}

/// Where the first key begins, and how many bytes it has.
fn find_key(text: &str) -> Option<(usize, usize)> {
    let is_part = |it: char| it.is_ascii_alphanumeric() || ['_', '-', '.', '+', '/'].contains(&it);
    let found = KEY_STARTS.iter().flat_map(|(start, more)| {
        text.match_indices(start).filter_map(move |(at, _)| {
            if text[..at].chars().next_back().is_some_and(is_part) {
                return None;
            }
            let length = text[at..].find(|it| !is_part(it)).unwrap_or(text.len() - at);
            let is_web_token = *start != "eyJ" || text[at..at + length].matches('.').count() == 2;
            (is_web_token && length >= start.len().saturating_add(*more)).then_some((at, length))
        })
    });
    found.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recognised_by_name_and_by_shape() {
        let check = |name: &str, value: &str, expect: Option<&str>| {
            assert_eq!(mask_secrets(name, value).as_deref(), expect, "{name} = {value}");
        };
        check("password", "'hunter2'", Some("(masked, 7 characters)"));
        check("dbPassword", "\"hunter2\"", Some("(masked, 7 characters)"));
        check("API_KEY", "b'0123'", Some("(masked, 4 characters)"));
        check("secret", "0x5580 \"abc\"", Some("(masked, 3 characters)"));
        check("password", "None", None);
        check("password", "''", None);
        check("password", "4", None);
        check("passwords", "['a', 'b']", None);
        check("token", "'+'", None);
        check("token", "'0123456789abcdef'", Some("(masked, 16 characters)"));
        check("token", "'a long text with spaces in it'", None);
        check("it", "{user: 'x', password: 'y z'}", Some("{user: 'x', password: (masked, 3 characters)}"));
        check("it", "{'api_key': 'abc', 'n': 1}", Some("{'api_key': (masked, 3 characters), 'n': 1}"));
        check("it", "{user: 'x', at: '12:30'}", None);
        let key = format!("ghp_{}", "a1".repeat(18));
        check("it", &format!("'Bearer {key}'"), Some("'Bearer (masked, 40 characters)'"));
        check("it", "'task-force and sk-1'", None);
        check("it", "'-----BEGIN PRIVATE KEY-----\\nabc'", Some("(masked, 34 characters)"));
        check("it", "{token: 'ü', password: 'ü'", Some("{token: 'ü', password: (masked, 1 characters)"));
    }
}
