//! No errors.

use alloc::boxed::Box;

use lasthop_base::{Duration, Probability, Stream};

use crate::{Channel, ChannelModel, ClosedForm, Iid};

/// A channel without errors, which has no parameters.
pub(crate) struct Perfect;

impl ChannelModel for Perfect {
    fn examples() -> &'static [&'static str] {
        &[]
    }

    fn channel(&self, stream: Stream) -> Box<dyn Channel> {
        Iid { ber: Probability::default() }.channel(stream)
    }

    fn closed_form(&self) -> Option<&dyn ClosedForm> {
        Some(self)
    }
}

impl ClosedForm for Perfect {
    fn loss_probability(&self, _frames: u32, _bits: u64, _on_air: Duration) -> f64 {
        0.0
    }
}
