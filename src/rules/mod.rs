//! What the Flux Operator, an API server or Flux itself would refuse, found before anything is applied.
//!
//! [`spec`] looks at what was written, one file per family; [`companion`] and [`documents`] at what stands beside and between
//! clusters; [`object`] at the rendered objects. Each collects every problem and changes nothing.

pub mod companion;
pub mod documents;
pub mod object;
pub mod spec;
pub mod syntax;
