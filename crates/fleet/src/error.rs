//! Why a fleet could not be had, or two of its hosts not be measured.

use std::fmt;

/// A failure that names the host, what was attempted there, what happened, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FleetError {
    /// The host; both, joined by ` and `, where it lies between them; none where it is not one host's.
    pub host: Option<String>,
    /// What was attempted, to follow "cannot".
    pub attempt: String,
    /// What happened, with what ssh or the agent itself said.
    pub happened: String,
    /// What to do.
    pub remedy: String,
    /// Whether the host is lost: it is not used again until it is revived.
    pub lost: bool,
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(host) = &self.host {
            write!(f, "{host}: ")?;
        }
        write!(f, "cannot {}: {}", self.attempt, self.happened)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

impl FleetError {
    /// A failure at one host, which stays usable.
    pub(crate) fn at(
        host: &str,
        attempt: impl Into<String>,
        happened: impl fmt::Display,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            host: Some(host.into()),
            attempt: attempt.into(),
            happened: happened.to_string(),
            remedy: remedy.into(),
            lost: false,
        }
    }

    /// A failure that is not a host's.
    pub(crate) fn of_all(
        attempt: impl Into<String>,
        happened: impl fmt::Display,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            host: None,
            ..Self::at("", attempt, happened, remedy)
        }
    }

    /// The same, with the host lost by it.
    #[must_use]
    pub(crate) fn and_lost(mut self) -> Self {
        self.lost = true;
        self
    }
}

/// The result of what a fleet does.
pub type Result<T> = std::result::Result<T, FleetError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_a_sentence() {
        let at = FleetError::at(
            "b07",
            "start an agent",
            "ssh: no route",
            "look at its network",
        );
        assert_eq!(
            at.to_string(),
            "b07: cannot start an agent: ssh: no route; look at its network"
        );
        assert!(at.and_lost().lost);
        let all = FleetError::of_all("start the lab", "no namespaces", "");
        assert_eq!(all.to_string(), "cannot start the lab: no namespaces");
    }
}
