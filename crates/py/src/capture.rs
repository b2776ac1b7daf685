//! Packets of captures.

use lasthop_capture::Packets;
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Return the TCP and UDP packets of a pcap or pcapng file as columns, and what the file says of the capture.
///
/// Returns
/// -------
/// dict of str to Any
///     A column for each field, with 0 where a packet lacks it; and what the file says.
///
/// Raises
/// ------
/// ValueError
///     If there are no TCP or UDP packets.
#[pyfunction]
pub(crate) fn read_packets<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let packets =
        py.detach(|| Packets::read(data)).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let left_out = packets.left_out().filter(|(left_out, _)| !left_out.is_by_nature());
    let all = PyDict::new(py);
    macro_rules! columns {
        ($($name:ident)*) => {
            $(all.set_item(stringify!($name), PyArray1::from_vec(py, packets.$name))?;)*
        };
    }
    columns! {
        time_ns interface protocol source target host source_port target_port size payload identification seq ack flags window
        mss sack_permitted timestamp echo sacks sack_at rtp_version rtp_type rtp_seq rtp_source sack_start sack_end
    }
    all.set_item("fragments", packets.fragments)?;
    all.set_item("tunnel", packets.tunnel)?;
    all.set_item("bare", packets.bare)?;
    all.set_item("dropped", packets.dropped)?;
    all.set_item("untimed", packets.untimed)?;
    all.set_item("damaged", packets.damaged)?;
    all.set_item("full", packets.full)?;
    all.set_item("overheard", packets.overheard)?;
    all.set_item("without_options", packets.without_options)?;
    all.set_item("kept", packets.kept)?;
    all.set_item("encrypted", packets.encrypted)?;
    all.set_item("left_out", left_out.map(|(left_out, count)| (left_out.to_string(), count)))?;
    Ok(all)
}
