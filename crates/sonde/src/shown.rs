//! What a run shows on the terminal when it is over: its tables, and the findings that want something done.
//!
//! Checked: the end-to-end tests of `assess` and `probe`.

use sonde_measure::Run;
use sonde_report::{Severity, View};

/// Prints every row, or the assessment, with the tables of what was measured.
pub fn print(run: &Run, rows: bool, width: usize) {
    match rows {
        true => print_rows(run, width),
        false => print_assessment(run, width),
    }
}

fn print_rows(run: &Run, width: usize) {
    println!("{}", sonde_report::rows_table(&run.rows(), width));
    let tables = [
        sonde_report::library_table(run, width),
        sonde_report::kernel_table(run, width),
        sonde_report::messages_table(run, width),
        sonde_report::checks_table(run, width),
        sonde_report::placements_table(run, width),
    ];
    for table in tables.into_iter().flatten() {
        println!("\n{table}");
    }
    if let Some(anatomy) = sonde_report::anatomy_table(run, width) {
        println!("\n{anatomy}");
        let mut view = View::of(run);
        view.findings
            .retain(|finding| finding.rule == "kernel-bypass");
        if !view.findings.is_empty() {
            println!("\n{}", sonde_report::findings_text(&view, width));
        }
    }
}

fn print_assessment(run: &Run, width: usize) {
    print_tables(run, width);
    print_findings(run, width);
}

/// The tables of what was measured; the summary where anything was that has no table of its own.
pub fn print_tables(run: &Run, width: usize) {
    if !sonde_report::has_own_tables(run) {
        println!("{}", sonde_report::summary_table(run, width));
    }
    let tables = [
        sonde_report::queueing_table(run, width),
        sonde_report::library_table(run, width),
        sonde_report::kernel_table(run, width),
        sonde_report::messages_table(run, width),
        sonde_report::checks_table(run, width),
        sonde_report::placements_table(run, width),
        sonde_report::sweep_table(run, width),
    ];
    for table in tables.into_iter().flatten() {
        println!("\n{table}\n");
    }
}

/// The findings that want something done; how many notes there are beside them.
fn print_findings(run: &Run, width: usize) {
    let mut view = View::of(run);
    let all = view.findings.len();
    view.findings
        .retain(|finding| finding.severity != Severity::Note);
    let notes = all - view.findings.len();
    if !view.findings.is_empty() {
        println!("{}", sonde_report::findings_text(&view, width));
    }
    if notes > 0 {
        println!("{notes} notes more are in the report; `sonde report show` prints them.");
    }
}
