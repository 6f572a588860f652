//! A TCP connection on the way to a program, which can be cut and restored.

#![allow(dead_code)] // each test program uses a part

use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Passes connections on to a program, until it is cut.
pub struct Tunnel {
    pub port: u16,
    program: u16,
    /// Its port stays its own while it is cut: nobody else listens there, and connections are refused.
    listener: TcpListener,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    accepts: Option<JoinHandle<()>>,
}

impl Tunnel {
    /// Passes on to this port.
    pub fn open(program: u16) -> Tunnel {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        // Only a port that is named is kept when the socket stops listening.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        let mut tunnel = Tunnel { port, program, listener, streams: Arc::default(), accepts: None };
        tunnel.restore();
        tunnel
    }

    /// Passes on again, at the same port.
    pub fn restore(&mut self) {
        rustix::net::listen(&self.listener, 16).unwrap();
        let (listener, program, streams) =
            (self.listener.try_clone().unwrap(), self.program, Arc::clone(&self.streams));
        self.accepts = Some(std::thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, program)) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                streams.lock().unwrap().extend([near, far]);
            }
        }));
    }

    /// Ends its connections, and accepts no more.
    pub fn cut(&mut self) {
        // Ends the `accept` of the thread.
        rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both).unwrap();
        self.accepts.take().unwrap().join().unwrap();
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
