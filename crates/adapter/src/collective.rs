//! A collective call as an adapter is given it.
//!
//! Model:   a library reads and writes as many bytes as the counts say: each length is checked against them before.
//! Checked: `lengths_are_held_to_the_counts`.

use sonde_message::{Call, Element, Error, Operation, Parts, Result};

use crate::abi::{Collective, address, room};

/// Lists of counts that live as long as the call.
#[derive(Debug, Default)]
pub struct Counts {
    sent: Vec<u64>,
    received: Vec<u64>,
}

/// The call for the adapter, and how many bytes it moves at most. `own` is this rank of `ranks`.
///
/// # Errors
/// A length that is not what the counts say, a root that is none, elements that are not whole, bits of floating point.
pub fn lowered(
    call: &mut Call<'_>,
    own: usize,
    ranks: usize,
    counts: &mut Counts,
) -> Result<(Collective, u64)> {
    let mut raw = Collective {
        kind: call.kind() as u32,
        element: 0,
        operation: 0,
        root: 0,
        input: std::ptr::null(),
        output: std::ptr::null_mut(),
        bytes: 0,
        sent: std::ptr::null(),
        received: std::ptr::null(),
        sent_each: 0,
        received_each: 0,
    };
    match call {
        Call::Barrier => {}
        Call::Broadcast { root, data } => {
            raw.root = rooted(*root, ranks)?;
            raw.bytes = data.len() as u64;
            raw.output = room(data);
        }
        Call::Reduce {
            root,
            input,
            output,
            element,
            operation,
        } => {
            raw.root = rooted(*root, ranks)?;
            let needed = if *root == own { input.len() } else { 0 };
            combining(&mut raw, input, output, needed, *element, *operation)?;
        }
        Call::Allreduce {
            input,
            output,
            element,
            operation,
        }
        | Call::Scan {
            input,
            output,
            element,
            operation,
        } => combining(&mut raw, input, output, input.len(), *element, *operation)?,
        parted_call => parted(&mut raw, parted_call, (own, ranks), counts)?,
    }
    let each = raw.sent_each.max(raw.received_each);
    let most = counts.sent.iter().chain(&counts.received).copied().max();
    let listed = if raw.sent.is_null() && raw.received.is_null() {
        0
    } else {
        most.unwrap_or(0)
    };
    let moved = raw.bytes.max(each).max(listed).saturating_mul(ranks as u64);
    Ok((raw, moved))
}

/// The calls in which each rank has a part.
fn parted(
    raw: &mut Collective,
    call: &mut Call<'_>,
    (own, ranks): (usize, usize),
    counts: &mut Counts,
) -> Result<()> {
    match call {
        Call::Gather {
            root,
            input,
            output,
            parts,
        } => {
            raw.root = rooted(*root, ranks)?;
            let whole = whole(parts, ranks)?;
            let needed = if *root == own { whole } else { 0 };
            between(raw, (input, parts.of(own)), (output, needed))?;
            (raw.received, raw.received_each) = told(parts, &mut counts.received);
        }
        Call::Scatter {
            root,
            input,
            output,
            parts,
        } => {
            raw.root = rooted(*root, ranks)?;
            let whole = whole(parts, ranks)?;
            let needed = if *root == own { whole } else { 0 };
            between(raw, (input, needed), (output, parts.of(own)))?;
            (raw.sent, raw.sent_each) = told(parts, &mut counts.sent);
        }
        Call::Allgather {
            input,
            output,
            parts,
        } => {
            let whole = whole(parts, ranks)?;
            between(raw, (input, parts.of(own)), (output, whole))?;
            (raw.received, raw.received_each) = told(parts, &mut counts.received);
        }
        Call::Alltoall {
            input,
            sent,
            output,
            received,
        } => {
            let (out, back) = (whole(sent, ranks)?, whole(received, ranks)?);
            between(raw, (input, out), (output, back))?;
            (raw.sent, raw.sent_each) = told(sent, &mut counts.sent);
            (raw.received, raw.received_each) = told(received, &mut counts.received);
        }
        _ => unreachable!("the caller has taken all others"),
    }
    Ok(())
}

fn wrong(what: &'static str, value: impl ToString, wanted: impl ToString) -> Error {
    Error::Argument {
        what,
        value: value.to_string(),
        wanted: wanted.to_string(),
    }
}

fn rooted(root: usize, ranks: usize) -> Result<i32> {
    if root < ranks {
        return Ok(root as i32);
    }
    Err(wrong("the root", root, format!("below {ranks}")))
}

/// Bytes of all parts.
fn whole(parts: &Parts<'_>, ranks: usize) -> Result<usize> {
    if let Parts::Each(all) = parts {
        if all.len() != ranks {
            return Err(wrong("the number of parts", all.len(), ranks));
        }
    }
    let total = (0..ranks).try_fold(0_usize, |sum, rank| sum.checked_add(parts.of(rank)));
    let fits = total.filter(|bytes| i32::try_from(*bytes).is_ok());
    fits.ok_or_else(|| wrong("the whole of all parts", "more", "less than 2 GiB"))
}

/// The list of counts, or none and the even count.
fn told(parts: &Parts<'_>, list: &mut Vec<u64>) -> (*const u64, u64) {
    match parts {
        Parts::Even(bytes) => (std::ptr::null(), *bytes as u64),
        Parts::Each(all) => {
            list.clear();
            list.extend(all.iter().map(|bytes| *bytes as u64));
            (list.as_ptr(), 0)
        }
    }
}

fn between(
    raw: &mut Collective,
    (input, in_bytes): (&[u8], usize),
    (output, out_bytes): (&mut [u8], usize),
) -> Result<()> {
    if input.len() < in_bytes {
        return Err(wrong("the input in bytes", input.len(), in_bytes));
    }
    if output.len() < out_bytes {
        return Err(wrong("the output in bytes", output.len(), out_bytes));
    }
    raw.input = address(input);
    raw.output = room(output);
    Ok(())
}

fn combining(
    raw: &mut Collective,
    input: &[u8],
    output: &mut [u8],
    needed: usize,
    element: Element,
    operation: Operation,
) -> Result<()> {
    if input.len() % element.bytes() != 0 || i32::try_from(input.len()).is_err() {
        let wanted = format!("whole elements of {} bytes", element.bytes());
        return Err(wrong("the input in bytes", input.len(), wanted));
    }
    let bits = matches!(operation, Operation::And | Operation::Or);
    if bits && matches!(element, Element::F32 | Element::F64) {
        return Err(wrong(
            "the element of a bitwise operation",
            "floating point",
            "an integer",
        ));
    }
    raw.element = element as u32;
    raw.operation = operation as u32;
    raw.bytes = input.len() as u64;
    between(raw, (input, input.len()), (output, needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(mut call: Call<'_>) -> String {
        let mut counts = Counts::default();
        match lowered(&mut call, 1, 3, &mut counts) {
            Ok(_) => "none".into(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn lengths_are_held_to_the_counts() {
        let (input, mut output) = ([0; 12], [0; 12]);
        let gather = |root, parts, room: usize| {
            let mut output = vec![0; room];
            let output = &mut output;
            refusal(Call::Gather {
                root,
                input: &input,
                output,
                parts,
            })
        };
        assert_eq!(gather(1, Parts::Even(4), 12), "none");
        assert_eq!(gather(2, Parts::Even(4), 0), "none", "only the root's");
        assert!(gather(1, Parts::Even(4), 11).contains("output in bytes is 11"));
        assert!(gather(0, Parts::Even(13), 0).contains("input in bytes is 12"));
        assert!(gather(3, Parts::Even(4), 0).contains("the root is 3"));
        assert!(gather(0, Parts::Each(&[1, 2]), 0).contains("number of parts is 2"));
        assert!(gather(1, Parts::Even(usize::MAX), 0).contains("less than 2 GiB"));
        let mut combine = |element, operation| {
            refusal(Call::Allreduce {
                input: &input,
                output: &mut output,
                element,
                operation,
            })
        };
        assert_eq!(combine(Element::I32, Operation::Or), "none");
        assert!(combine(Element::F64, Operation::Sum).contains("whole elements of 8"));
        assert!(combine(Element::F32, Operation::And).contains("an integer"));
    }

    #[test]
    fn counts_are_told_as_they_are() {
        let (input, mut output) = ([0; 9], [0; 6]);
        let mut counts = Counts::default();
        let mut call = Call::Alltoall {
            input: &input,
            sent: Parts::Each(&[4, 5, 0]),
            output: &mut output,
            received: Parts::Even(2),
        };
        let (raw, moved) = lowered(&mut call, 0, 3, &mut counts).unwrap();
        assert_eq!(counts.sent, [4, 5, 0]);
        assert!(!raw.sent.is_null() && raw.received.is_null());
        assert_eq!((raw.received_each, moved), (2, 15));
    }
}
