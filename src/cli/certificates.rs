//! Certificates of the clusters.
use std::collections::BTreeMap;

use super::error::CommandError;
use super::pipeline::Inputs;
use super::ui::Ui;
use crate::bundle::SecretForm;
use crate::compile::CompiledCluster;
use crate::diag::Diagnostics;
use crate::model::CertificateNeed;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Make,
    Report,
}

#[derive(Debug, Default)]
pub(crate) struct Certificates {
    public_keys: BTreeMap<CertificateNeed, String>,
}

impl Certificates {
    pub(crate) fn find(_: &Inputs, _: Missing, _: &mut Diagnostics, _: &Ui) -> Result<Self, CommandError> {
        Ok(Self::default())
    }
    pub(crate) fn public_keys(&self) -> &BTreeMap<CertificateNeed, String> {
        &self.public_keys
    }
    pub(crate) fn secret_form(&self, _: &CompiledCluster) -> SecretForm {
        SecretForm::Existing
    }
}
