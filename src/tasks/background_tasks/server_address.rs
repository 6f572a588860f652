//! The address of a page in what a dev server prints: `Local: http://localhost:5173/`.
//!
//! Only addresses of this machine count, and only where the server listens.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use tether_base::clipped_text::first_bytes;
use tether_base::sync::lock;
use tokio::sync::Notify;
use tokio::time::timeout;
use url::{Host, Url};

/// How often it is looked whether a server listens, when it has printed its address earlier.
const LISTEN_INTERVAL: Duration = Duration::from_millis(100);

/// How many ports are looked for.
const MAX_PORTS: usize = 64;
/// In bytes: the part of a line that is read.
const MAX_LINE: usize = 4096;

/// How Vite refuses a second server.
const OTHER_SERVER: &str = "Found another Vite dev process for this project at ";

/// An address that a line has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    pub url: String,
    pub port: u16,
}

/// Waits until `output` has an address on whose port the server listens: `find_listened` returns the first such port of
/// several. It is called for all addresses at once, however many lines they come in.
pub(super) async fn wait_for_served_address<F: Future<Output = Option<u16>>>(
    output: &Path,
    find_listened: impl Fn(Vec<u16>) -> F,
) -> io::Result<String> {
    let (found, added) = (Mutex::new(PrintedAddresses::default()), Notify::new());
    let printed = tether_process::wait_for_line(output, 0, |line| {
        if lock(&found).add(find_addresses(line)) {
            added.notify_one();
        }
        None::<Infallible>
    });
    let listened = async {
        loop {
            let ports = lock(&found).ports();
            if !ports.is_empty()
                && let Some(port) = find_listened(ports).await
                && let Some(url) = lock(&found).url_of(port)
            {
                return url;
            }
            // Also one that was printed before the server listens.
            let _ = timeout(LISTEN_INTERVAL, added.notified()).await;
        }
    };
    tokio::select! {
        printed = printed => match printed? {},
        address = listened => Ok(address),
    }
}

/// The addresses that a server has printed: of each port the first one, of at most [`MAX_PORTS`] ports the newest.
#[derive(Default)]
struct PrintedAddresses(VecDeque<ServerAddress>);

impl PrintedAddresses {
    /// Returns whether one of them is new.
    fn add(&mut self, addresses: Vec<ServerAddress>) -> bool {
        let mut is_new = false;
        for address in addresses {
            if self.0.iter().any(|known| known.port == address.port) {
                continue;
            }
            if self.0.len() == MAX_PORTS {
                self.0.pop_front();
            }
            self.0.push_back(address);
            is_new = true;
        }
        is_new
    }

    fn ports(&self) -> Vec<u16> {
        self.0.iter().map(|it| it.port).collect()
    }

    fn url_of(&self, port: u16) -> Option<String> {
        self.0.iter().find(|it| it.port == port).map(|it| it.url.clone())
    }
}

/// What to do where a dev server refuses to be the second of its project (Vite from 8.4 on), as it has printed. The other one is not
/// ours: its end is the user's.
pub fn describe_other_server(output: &str) -> Option<String> {
    let line = output.lines().find(|line| line.contains(OTHER_SERVER))?;
    let address = find_addresses(line).into_iter().next()?;
    let pid: u32 = line.rsplit_once("(PID ")?.1.split(')').next()?.parse().ok()?;
    let url = address.url;
    Some(format!(
        "end process {pid}, or show its page: `[window] kind = \"browser\"` and `url = {url:?}` in devtools.toml"
    ))
}

/// The addresses of this machine in a line of output, in its order.
pub fn find_addresses(line: &str) -> Vec<ServerAddress> {
    let line = first_bytes(line, MAX_LINE);
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
    fn a_server_that_runs_already_is_named_with_its_page() {
        let line = "Error: Found another Vite dev process for this project at http://localhost:5199/ (PID 27224).\nPass --bypass-lock";
        let told = describe_other_server(line).unwrap();
        assert!(
            told.starts_with("end process 27224, ") && told.contains("`url = \"http://localhost:5199/\"`"),
            "{told}"
        );
        assert_eq!(describe_other_server("Error: Found another Vite dev process for this project at x (PID 1)"), None);
    }

    #[tokio::test]
    async fn a_server_that_prints_many_addresses_before_it_listens_is_looked_for_once_for_all() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("output");
        let mut text: String = (0..10_000).map(|at| format!("proxying http://localhost:3000/{at}\n")).collect();
        text.extend((10_000..20_000).map(|port| format!("see http://localhost:{port}/\n")));
        std::fs::write(&output, text + "Local: http://localhost:3000/app\n").unwrap();
        let looked = Mutex::new(Vec::<Vec<u16>>::new());
        let find_listened = |ports: Vec<u16>| {
            lock(&looked).push(ports.clone());
            let listens = lock(&looked).len() >= 3;
            async move { ports.iter().copied().find(|port| listens && *port == 19_999) }
        };
        let address = wait_for_served_address(&output, find_listened).await.unwrap();
        assert_eq!(address, "http://localhost:19999/");
        // Not once for each line.
        let looked = lock(&looked);
        assert!(looked.len() < 50, "{}", looked.len());
        assert!(looked.iter().all(|ports| ports.len() <= MAX_PORTS), "{looked:?}");
    }

    #[test]
    fn of_each_port_the_first_address_counts() {
        let mut printed = PrintedAddresses::default();
        assert!(printed.add(find_addresses("http://localhost:1/app/ http://localhost:2/")));
        assert!(!printed.add(find_addresses("http://localhost:1/other http://[::1]:2/")));
        assert_eq!((printed.ports(), printed.url_of(1).unwrap()), (vec![1, 2], "http://localhost:1/app/".to_owned()));
        assert_eq!(printed.url_of(3), None);
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
