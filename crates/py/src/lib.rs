//! Python bindings of Lasthop: `lasthop._lasthop`. Names and meanings are those of the crates below; the bindings contain
//! no logic. Schemes written in Python come the other way.
//!
//! ```text
//! lasthop (Python) ──> _lasthop ──> Scenario       (lasthop-scenario, lasthop-predict)
//!     ^                    ├──────> Run            (lasthop-experiment)
//!     │                    ├──────> Pool           (lasthop-study)
//!     │                    ├──────> LossRecord     (lasthop-fit)
//!     │                    ├──────> read_packets   (lasthop-capture)
//!     │                    ├──────> Emulator, Calendar (lasthop-live)
//!     │                    └──────> gateway        (lasthop-gateway)
//!     └──── hooks ──── PythonScheme ──> Scheme     (lasthop-proto)
//! ```

#[cfg(target_os = "linux")]
mod calendar;
mod capture;
mod columns;
mod congestion;
mod discipline;
#[cfg(target_os = "linux")]
mod emulator;
mod error;
mod fit;
mod gateway;
mod link;
mod metric;
mod pool;
mod python_scheme;
mod run;
mod scenario;
mod scheme;
mod stack;
mod value;

use mimalloc::MiMalloc;
use pyo3::prelude::*;

/// Each run allocates its network and frees it. The C library's allocator returns that memory to the system, and
/// this one uses it again, in huge pages.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The compiled part of Lasthop.
#[pymodule]
mod _lasthop {
    use lasthop_fit::Family;
    use lasthop_scenario::Profile;
    use pyo3::prelude::*;
    use pyo3::types::{IntoPyDict, PyTuple};

    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::calendar::Calendar;
    #[pymodule_export]
    use crate::capture::read_packets;
    #[pymodule_export]
    use crate::congestion::{CongestionControl, congestion_controls};
    #[pymodule_export]
    use crate::discipline::{QueueDiscipline, queue_disciplines};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::emulator::Emulator;
    #[pymodule_export]
    use crate::error::ScenarioError;
    #[pymodule_export]
    use crate::fit::{LossFit, LossRecord, simulate_losses};
    #[pymodule_export]
    use crate::gateway::{gateway, gateway_report, gateway_schema, gateway_settings};
    #[pymodule_export]
    use crate::link::{Link, links};
    #[pymodule_export]
    use crate::metric::{MetricDefinition, UnknownMetric, better, metric_definitions, unit};
    #[pymodule_export]
    use crate::pool::{Pool, decode};
    #[pymodule_export]
    use crate::python_scheme::{
        PyHole, PyInstaller, PyNotice, PyOut, PyPacket, PyPort, PyReceiver, PySegment, PySenderState,
        PySeqNum, PySignal, PySite, PyStream, PyTally, PythonSchemeError,
    };
    #[pymodule_export]
    use crate::run::Run;
    #[pymodule_export]
    use crate::scenario::{Point, Scenario};
    #[pymodule_export]
    use crate::scheme::{Scheme, schemes};
    #[pymodule_export]
    use crate::stack::{StackSender, stack_senders};
    #[pymodule_export]
    use crate::value::{Quantity, quantity};

    /// The names and texts of the worked scenarios, in alphabetical order.
    const SCENARIOS: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("DEBUG_ASSERTIONS", cfg!(debug_assertions))?;
        module.add("LOSS_FAMILIES", PyTuple::new(module.py(), Family::ALL.map(Family::name))?)?;
        module.add("METRICS", crate::metric::metrics(module.py())?)?;
        module.add("PROFILES", PyTuple::new(module.py(), Profile::ALL.map(Profile::name))?)?;
        module.add("SCENARIOS", SCENARIOS.into_py_dict(module.py())?)?;
        module.add("__version__", lasthop_experiment::report::VERSION)
    }
}
