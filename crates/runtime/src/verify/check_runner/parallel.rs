//! Runs the gates of one stage in parallel: a few threads that take one gate after another. The caller gets all progress in its own thread.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use verdone_core::check::CheckRun;
use verdone_core::verify::CheckResult;

use super::{CheckMoment, Job, Shared, Worker};
use crate::process::output::Stream;
use crate::process::signal::Signals;
use crate::process::{self, Moment, Sweep};

/// The length of the progress queue. If a gate floods it, the gate waits instead of filling memory.
const QUEUE: usize = 64;

/// Progress from a thread: the job's index and what happened.
type News = (usize, What);

enum What {
    Started,
    Line(Stream, String),
    Tick,
    Ended(Box<io::Result<CheckResult>>),
}

pub(super) fn run(
    jobs: &[Job<'_>],
    threads: usize,
    shared: &Shared<'_>,
    signals: &Signals,
    on: &mut dyn FnMut(CheckMoment<'_>),
) -> io::Result<Vec<CheckResult>> {
    // One sweep for all gates: a sweep per gate would end the processes of the others.
    let sweep = Sweep::begin();
    let (news, heard) = sync_channel(QUEUE);
    let next = AtomicUsize::new(0);
    let ended = thread::scope(|scope| {
        for _ in 0..threads {
            let (news, next) = (news.clone(), &next);
            let started = thread::Builder::new().name("gate".to_owned()).spawn_scoped(scope, move || {
                take_jobs(jobs, next, shared, signals, &news);
            });
            // One thread is enough to run all gates. Without any, the caller gets the error.
            drop(started);
        }
        drop(news);
        forward_progress(jobs, &heard, on)
    });
    sweep.end(shared.grace, signals);
    let mut results = Vec::new();
    for (job, ended) in jobs.iter().zip(ended) {
        match ended {
            Some(result) => results.push(result?),
            // It was not started.
            None if signals.requested().is_some() => results.push(CheckRun::pending(job.check).into()),
            None => return Err(io::Error::other("could not start a thread for a gate")),
        }
    }
    Ok(results)
}

fn take_jobs(jobs: &[Job<'_>], next: &AtomicUsize, shared: &Shared<'_>, signals: &Signals, news: &SyncSender<News>) {
    let worker = Worker { shared, start: process::run_without_sweep };
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(job) = jobs.get(at) else { return };
        if signals.requested().is_some() || news.send((at, What::Started)).is_err() {
            return;
        }
        let ended = worker.work(job, signals, &mut |moment| match moment {
            Moment::Line { stream, text } => drop(news.send((at, What::Line(stream, text.to_owned())))),
            // Drop a tick instead of waiting: a late tick is useless.
            Moment::Tick => drop(news.try_send((at, What::Tick))),
        });
        if news.send((at, What::Ended(Box::new(ended)))).is_err() {
            return;
        }
    }
}

/// Forwards progress until the last thread has ended.
fn forward_progress(
    jobs: &[Job<'_>],
    heard: &Receiver<News>,
    on: &mut dyn FnMut(CheckMoment<'_>),
) -> Vec<Option<io::Result<CheckResult>>> {
    let mut ended: Vec<Option<io::Result<CheckResult>>> = jobs.iter().map(|_| None).collect();
    while let Ok((at, what)) = heard.recv() {
        let check = jobs[at].check;
        match what {
            What::Started => on(CheckMoment::Started(check)),
            What::Line(stream, text) => on(CheckMoment::During(check, Moment::Line { stream, text: &text })),
            What::Tick => on(CheckMoment::During(check, Moment::Tick)),
            What::Ended(result) => {
                if let Ok(result) = result.as_ref() {
                    on(CheckMoment::Ended(&result.run));
                }
                ended[at] = Some(*result);
            }
        }
    }
    ended
}
