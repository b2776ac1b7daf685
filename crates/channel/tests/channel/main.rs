//! Channels against closed forms, reference implementations and simulations. One program, which builds faster than many.

mod common;
mod config;
mod exposure;
mod frame_bursts;
mod gilbert;
mod loss;
mod mobility;
mod nguyen_noble;
mod outages;
mod rayleigh_gilbert;
mod registered;
mod semi_markov;
mod statistics;
mod survival;
mod trajectory;
