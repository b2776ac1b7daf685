//! Radio network feedback.

mod agent;
mod network;
mod reaction;
