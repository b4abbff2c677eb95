//! The same work on many things, on all processors, with the results in the order of the things.

use rayon::prelude::*;

/// From how many things on the start of threads pays: it takes about as long as to compile one cluster.
const WORTH_IT: usize = 8;

/// What `work` makes of each item. The result does not depend on the number of threads.
pub fn map<'a, T: Sync, R: Send>(items: &'a [T], work: impl Fn(&'a T) -> R + Sync + Send) -> Vec<R> {
    if items.len() < WORTH_IT { items.iter().map(work).collect() } else { items.par_iter().map(work).collect() }
}

/// The same with the items themselves.
pub fn map_into<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync + Send) -> Vec<R> {
    if items.len() < WORTH_IT {
        items.into_iter().map(work).collect()
    } else {
        items.into_par_iter().map(work).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_however_many_there_are() {
        for count in [0, 1, WORTH_IT - 1, WORTH_IT, 1000] {
            let items: Vec<usize> = (0..count).collect();
            let doubled: Vec<usize> = items.iter().map(|item| item * 2).collect();
            assert_eq!(map(&items, |item| item * 2), doubled);
            assert_eq!(map_into(items, |item| item * 2), doubled);
        }
    }
}
