//! 802.11n, 802.11ac and 802.11ax: by hand, against closed forms, and in random worlds.

mod absences;
mod harness;
mod hidden;
mod saturation;
mod signal;
mod timeline;
mod worlds;
