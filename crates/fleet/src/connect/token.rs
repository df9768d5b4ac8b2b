//! The run's token, and how both ends show that they have it without saying it.
//!
//! Model:   128 random bits. Each end sends a fresh nonce, and HMAC-SHA-256 of its role and both nonces under the token; so
//!          what was overheard once opens nothing later, and neither end obeys one that only says that it belongs. Proofs
//!          are compared in a time that does not depend on where they differ.
//! Source:  RFC 2104 (HMAC), FIPS 180-4 (SHA-256).
//! Checked: `the_code_is_that_of_the_standard`, `tokens_are_read_back`, `roles_and_nonces_count`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use std::fmt;
use std::io::Read;

use sha2::{Digest, Sha256};

use crate::error::{FleetError, Result};

const TOKEN_BYTES: usize = 16;
const BLOCK_BYTES: usize = 64;
/// The length of a nonce.
pub(super) const NONCE_BYTES: usize = 16;
/// The length of a proof.
pub(super) const PROOF_BYTES: usize = 32;

/// What only the run's own agents know.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; TOKEN_BYTES]);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Which end proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The one that connects.
    Peer,
    /// The one that listens.
    Host,
}

impl Token {
    /// A fresh one.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn random() -> Result<Self> {
        Ok(Self(random()?))
    }

    /// Reads 32 hexadecimal digits, with white space around them.
    ///
    /// # Errors
    /// It is something else; the text itself is not repeated.
    pub fn parse(text: &str) -> Result<Self> {
        let digits = text.trim().as_bytes();
        let value = |digit: u8| (digit as char).to_digit(16);
        let pairs = digits.chunks(2).map(|pair| {
            let [high, low] = *pair else { return None };
            u8::try_from(value(high)? << 4 | value(low)?).ok()
        });
        let bytes: Option<Vec<u8>> = pairs.collect();
        let token = bytes.and_then(|bytes| bytes.try_into().ok());
        token.map(Self).ok_or_else(|| {
            FleetError::of_all(
                "read the token",
                format!(
                    "it has {} characters that are not 32 hexadecimal digits",
                    digits.len()
                ),
                "give the one that the orchestrator printed, or make one: `openssl rand -hex 16`",
            )
        })
    }

    /// The 32 digits.
    pub fn text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What shows that this end knows the token.
    pub(super) fn proof(
        &self,
        role: Role,
        peer: &[u8; NONCE_BYTES],
        host: &[u8; NONCE_BYTES],
    ) -> [u8; PROOF_BYTES] {
        let role: &[u8] = match role {
            Role::Peer => b"sonde guest",
            Role::Host => b"sonde host",
        };
        hmac(&self.0, &[role, peer, host])
    }
}

/// Fresh random bytes.
pub(super) fn random<const COUNT: usize>() -> Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| {
            FleetError::of_all("read /dev/urandom for a token", error, "mount /dev")
        })?;
    Ok(bytes)
}

/// Whether two proofs are the same, in a time that does not tell how far they are.
pub(super) fn same(one: &[u8; PROOF_BYTES], other: &[u8; PROOF_BYTES]) -> bool {
    let differing = one
        .iter()
        .zip(other)
        .fold(0, |differing, (a, b)| differing | (a ^ b));
    std::hint::black_box(differing) == 0
}

/// HMAC-SHA-256 of the parts, one after the other; the key is at most a block long.
fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; PROOF_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    for (place, byte) in block.iter_mut().zip(key) {
        *place = *byte;
    }
    let mut inner = Sha256::new();
    inner.update(block.map(|byte| byte ^ 0x36));
    parts.iter().for_each(|part| inner.update(part));
    let mut outer = Sha256::new();
    outer.update(block.map(|byte| byte ^ 0x5c));
    outer.update(inner.finalize());
    outer.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_that_of_the_standard() {
        // RFC 4231 §4.2 and §4.3.
        let hex = |bytes: [u8; 32]| bytes.map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(
            hex(hmac(&[0x0b; 20], &[b"Hi ", b"There"])),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
        assert_eq!(
            hex(hmac(b"Jefe", &[b"what do ya want for nothing?"])),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn tokens_are_read_back() {
        let token = Token::random().unwrap();
        assert_ne!(token, Token::random().unwrap());
        assert_eq!(
            Token::parse(&format!(" {}\n", token.text())).unwrap(),
            token
        );
        assert!(!format!("{token:?}").contains(&token.text()));
        for bad in [
            "",
            "12",
            &"g".repeat(32),
            &"0".repeat(31),
            &"0".repeat(33),
            &"0".repeat(64),
        ] {
            let said = Token::parse(bad).unwrap_err().to_string();
            assert!(said.contains("32 hexadecimal digits"), "{said}");
            assert!(bad.is_empty() || bad == "12" || !said.contains(bad));
        }
    }

    #[test]
    fn roles_and_nonces_count() {
        let (token, other) = (Token([1; 16]), Token([2; 16]));
        let (a, b) = ([3; 16], [4; 16]);
        let proof = token.proof(Role::Peer, &a, &b);
        assert!(same(&proof, &token.proof(Role::Peer, &a, &b)));
        assert!(!same(&proof, &token.proof(Role::Host, &a, &b)));
        assert!(!same(&proof, &token.proof(Role::Peer, &b, &a)));
        assert!(!same(&proof, &other.proof(Role::Peer, &a, &b)));
    }
}
