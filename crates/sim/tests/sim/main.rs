//! Tests of the simulator: its engine, its links and radios, and the protocols on networks.

mod applications;
mod disciplines;
mod look_ahead;
mod networks;
mod ns2;
mod queues;
mod radio;
mod schemes;
mod signal_meter;
mod tcp;
mod varying;
mod wifi;
mod wlan;
