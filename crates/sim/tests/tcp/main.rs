//! TCP as a whole: invariants under every small loss pattern and in random worlds, and closed forms.

mod closed_forms;
mod embedded;
mod exhaustive;
mod giving_up;
mod worlds;
