//! What the Flux Operator, an API server or Flux itself would refuse, found before anything is applied.
//!
//! [`spec`] looks at what was written, one file per family; [`companion`] and [`documents`] at what stands beside and between
//! clusters; [`object`] at the rendered objects, [`strategy`] at what does not go together with a strategy, [`fit`] at views and the images that they are to run in. Each collects every problem and changes nothing.

pub mod capacity;
pub mod companion;
pub mod documents;
pub mod fit;
pub mod object;
pub mod spec;
pub mod strategy;
pub mod syntax;
