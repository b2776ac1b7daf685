//! The calendar with guests that are threads: they speak the protocols of Linux's `arch/um`, over sockets and memory.

#![cfg(target_os = "linux")]

mod calendar;
mod guest;
mod hostile;
