//! The address of a page in what a dev server prints: `Local: http://localhost:5173/`.
//!
//! Only addresses of this machine count, and only where the server listens.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use url::{Host, Url};

use crate::process;
use crate::sync::lock;

/// How often it is looked whether a server listens, when it has printed its address earlier.
const LISTEN_INTERVAL: Duration = Duration::from_millis(100);

/// In bytes: the part of a line that is read.
const MAX_LINE: usize = 4096;

/// An address that a line has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    pub url: String,
    pub port: u16,
}

/// Waits until `output` has an address on whose port the server listens: `is_served`.
pub(super) async fn wait_for_served_address(output: &Path, is_served: impl Fn(u16) -> bool) -> io::Result<String> {
    let found: Mutex<Vec<ServerAddress>> = Mutex::default();
    let find_served = || lock(&found).iter().find(|it| is_served(it.port)).map(|it| it.url.clone());
    let printed = process::wait_for_line(output, 0, |line| {
        lock(&found).extend(find_addresses(line));
        find_served()
    });
    let listened = async {
        loop {
            tokio::time::sleep(LISTEN_INTERVAL).await;
            if let Some(address) = find_served() {
                return address;
            }
        }
    };
    tokio::select! {
        address = printed => address,
        address = listened => Ok(address),
    }
}

/// The addresses of this machine in a line of output, in its order.
pub fn find_addresses(line: &str) -> Vec<ServerAddress> {
    let line = &line[..line.floor_char_boundary(MAX_LINE)];
    let plain = anstream::adapter::strip_str(line).to_string();
    let starts = plain.match_indices("http").map(|(at, _)| at);
    starts
        .filter_map(|at| plain[at..].split([' ', '\t', '"', '\'', '`', '<', '>', ',', ';']).next())
        .filter_map(parse_address)
        .collect()
}

fn parse_address(text: &str) -> Option<ServerAddress> {
    let mut url = Url::parse(text.trim_end_matches(['.', ')', ']', ':', '!']))
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let is_any = match url.host()? {
        Host::Domain(name) if name == "localhost" || name.ends_with(".localhost") => false,
        Host::Ipv4(address) if address.is_loopback() || address.is_unspecified() => address.is_unspecified(),
        Host::Ipv6(address) if address.is_loopback() || address.is_unspecified() => address.is_unspecified(),
        _ => return None,
    };
    if is_any {
        // A server listens on it; a browser opens no page there.
        url.set_host(Some("localhost")).ok()?;
    }
    // Nothing else is taken over from what a program prints: no user, no fragment.
    if !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    url.set_fragment(None);
    Some(ServerAddress { port: url.port_or_known_default()?, url: url.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_dev_servers_have_their_address() {
        let check = |line: &str, expect: &[(&str, u16)]| {
            let found: Vec<(String, u16)> = find_addresses(line).into_iter().map(|it| (it.url, it.port)).collect();
            let expect: Vec<(String, u16)> = expect.iter().map(|(url, port)| ((*url).to_owned(), *port)).collect();
            assert_eq!(found, expect, "{line}");
        };
        let vite = "  \u{1b}[32m➜\u{1b}[39m  \u{1b}[1mLocal\u{1b}[22m:   \u{1b}[36mhttp://localhost:\u{1b}[1m5174\u{1b}[22m/app/\u{1b}[39m";
        check(vite, &[("http://localhost:5174/app/", 5174)]);
        check("   - Local:        http://localhost:3000", &[("http://localhost:3000/", 3000)]);
        let webpack = "<i> [webpack-dev-server] Loopback: http://localhost:8080/, http://[::1]:8080/";
        check(webpack, &[("http://localhost:8080/", 8080), ("http://[::1]:8080/", 8080)]);
        check("open your browser on http://localhost:4200/ **", &[("http://localhost:4200/", 4200)]);
        check("Server running at http://0.0.0.0:1234.", &[("http://localhost:1234/", 1234)]);
        check("(https://127.0.0.1:8443/x#y)", &[("https://127.0.0.1:8443/x", 8443)]);
    }

    #[test]
    fn addresses_elsewhere_and_other_texts_are_none() {
        for line in [
            "  ➜  Network: http://192.168.1.7:5173/",
            "see https://vite.dev/config",
            "http://localhost.example.org:1/",
            "http://me:secret@localhost:1/",
            "http://",
            "httpd listens on 80",
            "",
        ] {
            assert_eq!(find_addresses(line), [], "{line}");
        }
    }
}
