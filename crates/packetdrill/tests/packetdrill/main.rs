//! The endpoint behind the functions that packetdrill calls.
#![cfg(target_os = "linux")]

mod host;
mod scripts;
mod table;
