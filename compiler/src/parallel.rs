//! The same function over many items, on several threads.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Items that a thread takes at a time. Fewer are not worth a thread; a few large ones in a row keep nobody waiting.
const BLOCK: usize = 8;

/// As many threads as there are cores.
pub(crate) fn cores() -> NonZero<usize> {
    thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

/// Results in the order of the items, whichever thread came to which.
pub(crate) fn map<T: Sync, R: Send>(
    threads: NonZero<usize>,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let blocks: Vec<&[T]> = items.chunks(BLOCK).collect();
    let threads = threads.get().min(blocks.len());
    if threads < 2 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(block) = blocks.get(at) else {
                return done;
            };
            done.push((at, block.iter().map(&work).collect::<Vec<R>>()));
        }
    };
    let mut done: Vec<(usize, Vec<R>)> = thread::scope(|scope| {
        let running: Vec<_> = (1..threads).map(|_| scope.spawn(take)).collect();
        let mut done = take();
        for thread in running {
            done.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().flat_map(|(_, results)| results).collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    #[test]
    fn results_keep_the_order_of_the_items_on_any_number_of_threads() {
        let items: Vec<usize> = (0..1001).collect();
        let doubled: Vec<usize> = items.iter().map(|item| item * 2).collect();
        for threads in [1, 2, 3, 7, 2000] {
            let threads = NonZero::new(threads).unwrap();
            assert_eq!(super::map(threads, &items, |item| item * 2), doubled);
        }
    }

    #[test]
    #[should_panic(expected = "item 500")]
    fn a_panic_on_one_thread_is_not_lost() {
        let items: Vec<usize> = (0..1001).collect();
        super::map(NonZero::new(4).unwrap(), &items, |item| {
            assert_ne!(*item, 500, "item 500");
        });
    }
}
