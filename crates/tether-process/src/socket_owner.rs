//! Whose processes are at the ends of a local connection: our user's, or another's.
//!
//! Another user of the machine may listen on a port that none of our programs has taken: their process would see breakpoints
//! and expressions, and send whatever it likes.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use tokio::net::{TcpListener, TcpStream};

use crate::platform::{find_listener_owner, is_own_connection};

/// Accepts the first connection from a process of the same user; others are closed.
///
/// # Errors
/// The listener fails, or the owner of a connection cannot be found out.
pub async fn accept_own_user(listener: &TcpListener) -> std::io::Result<TcpStream> {
    loop {
        let (stream, from) = listener.accept().await?;
        if is_own_connection(from, listener.local_addr()?)? {
            return Ok(stream);
        }
    }
}

/// Why the listener of an address is not to be trusted: it is local, and not our user's. `None` when it is ours, nobody's or
/// on another machine.
///
/// # Errors
/// The owners of sockets cannot be read.
pub fn foreign_listener(address: SocketAddr) -> std::io::Result<Option<String>> {
    if !is_local(address.ip()) {
        return Ok(None);
    }
    let us = rustix::process::getuid().as_raw();
    let owner = find_listener_owner(address)?.filter(|owner| *owner != us);
    Ok(owner.map(|owner| format!("it is listened on by a process of user {owner}, not of user {us}")))
}

/// Only an address of this machine can be bound.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_of_our_own_and_one_elsewhere_pass() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(foreign_listener(listener.local_addr().unwrap()).unwrap(), None);
        // A documentation address: no machine has it.
        assert!(!is_local("192.0.2.1".parse().unwrap()));
        assert_eq!(foreign_listener("192.0.2.1:1".parse().unwrap()).unwrap(), None);
    }
}
