//! That the arguments of a collective call can be what all ranks mean.
//!
//! Model:   each rank sees its own only; that they fit those of the others shows when a message has another length.
//! Units:   bytes; ranks of the group.
//! Checked: `what_cannot_be_is_an_error`.

use super::combine;
use crate::{Call, Element, Error, Parts, Result};

/// Checks the call of a rank.
///
/// # Errors
/// [`Error::Argument`]: a root beyond the group, buffers that are not as long as the call says, parts of elements,
/// counts that are not one a rank, bitwise operations on floating point.
pub(super) fn check(call: &Call<'_>, rank: usize, size: usize) -> Result<()> {
    match call {
        Call::Barrier => Ok(()),
        Call::Broadcast { root, .. } => among(*root, size),
        Call::Reduce {
            root,
            input,
            output,
            element,
            operation,
        } => {
            among(*root, size)?;
            combine::check(*element, *operation)?;
            whole(input, *element)?;
            length(
                "the output of a reduce",
                output,
                at(*root, rank, input.len()),
            )
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
        } => {
            combine::check(*element, *operation)?;
            whole(input, *element)?;
            length("the output of a reduction", output, input.len())
        }
        Call::Gather {
            root,
            input,
            output,
            parts,
        } => {
            among(*root, size)?;
            each(parts, size)?;
            length("a rank's part of a gather", input, parts.of(rank))?;
            length(
                "the whole of a gather",
                output,
                at(*root, rank, parts.begin(size)),
            )
        }
        Call::Scatter {
            root,
            input,
            output,
            parts,
        } => {
            among(*root, size)?;
            each(parts, size)?;
            length("a rank's part of a scatter", output, parts.of(rank))?;
            length(
                "the whole of a scatter",
                input,
                at(*root, rank, parts.begin(size)),
            )
        }
        Call::Allgather {
            input,
            output,
            parts,
        } => {
            each(parts, size)?;
            length("a rank's part of an allgather", input, parts.of(rank))?;
            length("the whole of an allgather", output, parts.begin(size))
        }
        Call::Alltoall {
            input,
            sent,
            output,
            received,
        } => {
            each(sent, size)?;
            each(received, size)?;
            length("what an alltoall sends", input, sent.begin(size))?;
            length("what an alltoall receives", output, received.begin(size))?;
            if matches!(sent, Parts::Even(_)) == matches!(received, Parts::Even(_)) {
                length(
                    "the own part of an alltoall",
                    &input[..sent.of(rank)],
                    received.of(rank),
                )
            } else {
                Err(Error::Argument {
                    what: "the parts of an alltoall",
                    value: "even on one side and a count for each rank on the other".into(),
                    wanted: "the same on both sides and on all ranks".into(),
                })
            }
        }
    }
}

const fn at(root: usize, rank: usize, bytes: usize) -> usize {
    if rank == root { bytes } else { 0 }
}

fn among(root: usize, size: usize) -> Result<()> {
    if root < size {
        return Ok(());
    }
    Err(Error::Argument {
        what: "the root",
        value: root.to_string(),
        wanted: format!("one of the {size} ranks from 0"),
    })
}

fn whole(input: &[u8], element: Element) -> Result<()> {
    if input.len() % element.bytes() == 0 {
        return Ok(());
    }
    Err(Error::Argument {
        what: "the length of what is reduced",
        value: format!("{} bytes", input.len()),
        wanted: format!("whole elements of {} bytes", element.bytes()),
    })
}

fn each(parts: &Parts<'_>, size: usize) -> Result<()> {
    match parts {
        Parts::Each(counts) if counts.len() != size => Err(Error::Argument {
            what: "the number of parts",
            value: counts.len().to_string(),
            wanted: format!("{size}, one a rank"),
        }),
        _ => Ok(()),
    }
}

fn length(what: &'static str, bytes: &[u8], wanted: usize) -> Result<()> {
    if bytes.len() == wanted {
        return Ok(());
    }
    Err(Error::Argument {
        what,
        value: format!("{} bytes", bytes.len()),
        wanted: format!("{wanted} bytes"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;

    #[test]
    fn what_cannot_be_is_an_error() {
        let told = |call: &Call<'_>| check(call, 1, 3).unwrap_err().to_string();
        let mut data = [0; 8];
        assert!(
            told(&Call::Broadcast {
                root: 3,
                data: &mut data
            })
            .contains("3 ranks")
        );
        let reduce = |element, operation| Call::Allreduce {
            input: &[0; 6],
            output: &mut [],
            element,
            operation,
        };
        assert!(told(&reduce(Element::F32, Operation::And)).contains("And of F32"));
        assert!(told(&reduce(Element::I32, Operation::Sum)).contains("whole elements of 4"));
        assert!(told(&reduce(Element::U8, Operation::Sum)).contains("6 bytes"));
        let gather = Call::Gather {
            root: 1,
            input: &[0; 2],
            output: &mut data,
            parts: Parts::Each(&[3, 2]),
        };
        assert!(told(&gather).contains("3, one a rank"));
        let alltoall = Call::Alltoall {
            input: &[0; 3],
            sent: Parts::Even(1),
            output: &mut data[..3],
            received: Parts::Each(&[1, 1, 1]),
        };
        assert!(told(&alltoall).contains("both sides"));
    }
}
