//! The document from which a scenario was read, so that it can be changed.

use std::fmt;
use std::sync::Arc;

use lasthop_proto::scheme::ExternalSchemes;

use super::{Document, Origin};
use crate::error::ScenarioError;
use crate::tree::{Node, Value};

/// An axis of a sweep as written.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) path: String,
    /// The keys of the path, each with its location.
    pub(crate) keys: Vec<(String, Origin)>,
    pub(crate) values: Vec<Written>,
}

impl Draft {
    /// Location of the last key.
    pub(crate) fn at(&self) -> &Origin {
        &self.keys[self.keys.len() - 1].1
    }
}

/// A value as written.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) value: Node,
    pub(crate) at: Origin,
}

/// A document, and the values of a point of its sweep.
///
/// Sources do not matter to the equality of scenarios.
#[derive(Clone, Default)]
pub(crate) struct Source {
    document: Option<Arc<Document>>,
    axes: Option<Arc<[Draft]>>,
    /// Pairs of the index of an axis and of its value.
    picks: Vec<(usize, usize)>,
}

impl Source {
    pub(crate) fn new(document: Arc<Document>) -> Source {
        Source { document: Some(document), ..Source::default() }
    }

    /// The source of a point.
    pub(crate) fn point(base: Arc<Document>, axes: Arc<[Draft]>, picks: &[(usize, usize)]) -> Source {
        Source { document: Some(base), axes: Some(axes), picks: picks.to_vec() }
    }

    /// The document with the values of the point.
    ///
    /// # Errors
    /// If the values do not go together.
    pub(crate) fn document(&self) -> Result<Document, ScenarioError> {
        let mut document = match &self.document {
            Some(document) => Document::clone(document),
            None => Document::parse("", "")?,
        };
        let axes = self.axes.as_deref().unwrap_or_default();
        for &(axis, pick) in &self.picks {
            let (draft, written) = (&axes[axis], &axes[axis].values[pick]);
            document.lay(&draft.keys, (&written.value, &written.at))?;
        }
        Ok(document)
    }

    /// The same source with the document of another.
    pub(crate) fn with_document_of(&self, other: &Source) -> Source {
        Source { document: other.document.clone(), ..self.clone() }
    }

    /// The same source with other schemes to compare, which may be `external`.
    ///
    /// # Errors
    /// Never, since a scenario has been read from the document.
    pub(crate) fn with_schemes(
        &self,
        schemes: &[String],
        external: &ExternalSchemes,
    ) -> Result<Source, ScenarioError> {
        let Some(document) = &self.document else { return Ok(self.clone()) };
        let mut document = Document::clone(document).with_schemes(external);
        let schemes = Value::List(schemes.iter().map(|name| Value::Text(name.clone())).collect());
        document.set_key("schemes", schemes)?;
        Ok(Source { document: Some(Arc::new(document)), ..self.clone() })
    }
}

impl PartialEq for Source {
    fn eq(&self, _other: &Source) -> bool {
        true
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}
