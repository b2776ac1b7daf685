//! Scenarios, from the file to the results. One program, since a program for each file takes longer to build than to run; but a
//! random scenario that takes too long ends its own.

mod applications;
mod black_holes;
mod calls;
mod cells;
mod combinations;
mod common;
mod counters;
mod data_files;
mod delays;
mod energy;
mod external;
mod grants;
mod l4s;
mod m_tcp;
mod mobility;
mod networks;
mod packet_fec;
mod places;
mod queues;
mod quic;
mod radio;
mod reactions;
mod reordering;
mod runs;
mod shared_radio;
mod split;
mod traces;
mod varying;
mod wifi;
mod wtcp;
mod wtcp_timestamps;
