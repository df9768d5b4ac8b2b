//! Columns of a store, as they are read into types.

pub fn run(bytes: &[u8]) {
    sonde_record::fuzz::column(bytes);
}
