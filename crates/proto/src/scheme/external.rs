//! Schemes from outside this crate.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use lasthop_base::Time;

use super::{Scheme, Schemes};

/// Schemes that are not registered here. A name may not be that of a registered scheme.
#[derive(Clone, Default)]
pub struct ExternalSchemes(Vec<Arc<dyn Scheme + Send + Sync>>);

impl ExternalSchemes {
    /// The schemes, in the order in which they were added.
    pub fn all(&self) -> impl Iterator<Item = &dyn Scheme> {
        self.0.iter().map(|scheme| &**scheme as &dyn Scheme)
    }
}

impl Schemes {
    /// Adds an external scheme. It replaces an external one with the same name.
    ///
    /// # Errors
    /// If a registered scheme has its name.
    pub fn add(
        &mut self,
        scheme: Arc<dyn Scheme + Send + Sync>,
    ) -> Result<(), Arc<dyn Scheme + Send + Sync>> {
        let ExternalSchemes(external) = &mut self.external;
        if let Some(other) = external.iter_mut().find(|other| other.name() == scheme.name()) {
            *other = scheme;
        } else if self.get(scheme.name()).is_some() {
            return Err(scheme);
        } else {
            self.external.0.push(scheme);
        }
        Ok(())
    }
}

/// A scheme has no state that a panic of a run could leave inconsistent.
impl UnwindSafe for ExternalSchemes {}
impl RefUnwindSafe for ExternalSchemes {}

/// Equal if they are the same objects.
impl PartialEq for ExternalSchemes {
    fn eq(&self, other: &ExternalSchemes) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

impl fmt::Debug for ExternalSchemes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().map(Scheme::name)).finish()
    }
}

/// The failure of an agent or a reaction of an external scheme.
#[derive(Clone, Debug)]
pub struct SchemeFailure {
    /// The name of the scheme.
    pub scheme: &'static str,
    /// The simulated time; `None` before the run.
    pub at: Option<Time>,
    /// Why it failed.
    pub cause: Arc<dyn Error + Send + Sync>,
}

impl fmt::Display for SchemeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SchemeFailure { scheme, at, cause } = self;
        match at {
            Some(at) => write!(f, "scheme \"{scheme}\" failed at {at}: {cause}"),
            None => write!(f, "scheme \"{scheme}\" failed before the run: {cause}"),
        }
    }
}
