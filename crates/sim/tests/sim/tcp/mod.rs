//! End-to-end tests of TCP: invariants under all small loss patterns and in random networks, and closed
//! forms.

mod closed_forms;
mod embedded;
mod exhaustive;
mod full_queue;
mod giving_up;
mod marks;
mod worlds;
