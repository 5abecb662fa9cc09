//! Control socket.
