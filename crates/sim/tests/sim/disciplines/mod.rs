//! Queue disciplines other than drop-tail: each against its specification by hand, and all of them on links.

mod adaptive_red;
mod bench;
mod cake;
mod codel;
mod dualpi2;
mod fq_codel;
mod links;
mod pie;
mod policer;
mod priority;
mod red;
mod worlds;
