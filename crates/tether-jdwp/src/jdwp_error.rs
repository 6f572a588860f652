//! Why a request to a virtual machine failed.

use std::fmt;
use std::time::Duration;

/// An error of a connection or of one request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JdwpError {
    /// What was received is not what the specification says.
    #[error("the virtual machine sent something that is not JDWP: {0}")]
    Malformed(String),
    /// The virtual machine answered with an error.
    #[error("{command} failed: {code}")]
    Refused {
        /// Its name in the specification.
        command: &'static str,
        /// The reason that the virtual machine gave.
        code: JdwpErrorCode,
    },
    /// No reply has come before the deadline.
    #[error("{command} was not answered within {}", humantime::format_duration(*.after))]
    TimedOut {
        /// Its name in the specification.
        command: &'static str,
        /// How long it was waited for.
        after: Duration,
    },
    /// The reply had more bytes than are read.
    #[error("the answer to {command} has {length} bytes, more than are read")]
    TooLarge {
        /// Its name in the specification.
        command: &'static str,
        /// Bytes of the whole reply; none of them was kept.
        length: usize,
    },
    /// More than fits into a packet.
    #[error("{command} is too large to be sent")]
    Unsendable {
        /// Its name in the specification.
        command: &'static str,
    },
    /// The connection has ended; the text is the reason.
    #[error("the connection to the virtual machine has ended: {0}")]
    Closed(String),
    /// Who listens there is no virtual machine that is waiting for a debugger.
    #[error("no JDWP handshake: {0}")]
    Handshake(String),
}

impl JdwpError {
    /// Whether the virtual machine answered with that error.
    pub fn has_code(&self, expected: JdwpErrorCode) -> bool {
        matches!(self, JdwpError::Refused { code, .. } if *code == expected)
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        matches!(self, JdwpError::Closed(_))
    }
}

/// An error of a virtual machine (JDWP: Error Constants).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JdwpErrorCode(pub u16);

impl JdwpErrorCode {
    /// The thread has ended, or the id is not that of a thread.
    pub const INVALID_THREAD: JdwpErrorCode = JdwpErrorCode(10);
    /// Frames and variables can only be read while the thread is suspended.
    pub const THREAD_NOT_SUSPENDED: JdwpErrorCode = JdwpErrorCode(13);
    /// The object has been collected, or never was.
    pub const INVALID_OBJECT: JdwpErrorCode = JdwpErrorCode(20);
    /// The virtual machine does not change that frame.
    pub const OPAQUE_FRAME: JdwpErrorCode = JdwpErrorCode(32);
    /// A native method has neither lines nor variables.
    pub const NATIVE_METHOD: JdwpErrorCode = JdwpErrorCode(511);
    /// The class was compiled without it (`javac -g` adds it).
    pub const ABSENT_INFORMATION: JdwpErrorCode = JdwpErrorCode(101);
}

/// The codes with what they mean for a user.
const MEANINGS: &[(u16, &str)] = &[
    (10, "the thread has ended"),
    (11, "there is no such thread group"),
    (12, "the thread's priority is invalid"),
    (13, "the thread is not suspended"),
    (14, "the thread is suspended"),
    (15, "the thread has not started, or has ended"),
    (20, "the object has been collected"),
    (21, "there is no such class"),
    (22, "the class is not prepared"),
    (23, "there is no such method"),
    (24, "there is no code there"),
    (25, "there is no such field"),
    (30, "the frame is gone"),
    (31, "there are no more frames"),
    (32, "this is not possible in that frame"),
    (33, "this is not the current frame"),
    (34, "the value is of another type"),
    (35, "there is no such variable here"),
    (40, "the virtual machine has no such item"),
    (41, "an event request of that kind is not valid"),
    (50, "this is the wrong thread"),
    (60, "the class file is not valid"),
    (61, "the class would be its own superclass"),
    (62, "the class failed its verification"),
    (63, "a method was added, which a running class does not take"),
    (64, "a field was added, removed or changed, which a running class does not take"),
    (65, "the checked signature differs"),
    (66, "the superclass or the interfaces changed, which a running class does not take"),
    (67, "a method was removed, which a running class does not take"),
    (68, "the class file's version is not supported"),
    (69, "the name of the class differs"),
    (70, "the modifiers of the class changed, which a running class does not take"),
    (71, "the modifiers of a method changed, which a running class does not take"),
    (99, "the virtual machine cannot do this"),
    (100, "a pointer is null"),
    (101, "the class was compiled without this information (`javac -g` adds it)"),
    (102, "there is no such event"),
    (103, "an argument is not valid"),
    (110, "the virtual machine is out of memory"),
    (111, "debugging is not enabled"),
    (112, "the virtual machine has ended"),
    (113, "an error inside the virtual machine"),
    (115, "the virtual machine does not know this thread"),
    (500, "there is no such transport"),
    (503, "there is no such index"),
    (504, "a length is not valid"),
    (506, "the string is not valid"),
    (507, "the class loader is not valid"),
    (508, "the array is not valid"),
    (511, "it is a native method"),
    (512, "the count is not valid"),
];

impl fmt::Display for JdwpErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match MEANINGS.iter().find(|(code, _)| *code == self.0) {
            Some((code, meaning)) => write!(f, "{meaning} (JDWP error {code})"),
            None => write!(f, "JDWP error {}", self.0),
        }
    }
}
