//! Numbers of pcapng files, for reading and writing (draft-ietf-opsawg-pcapng).

/// Section header block; the same in either byte order.
pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
/// Interface description block.
pub(crate) const INTERFACE: u32 = 1;
/// Packet block, obsolete.
pub(crate) const PACKET: u32 = 2;
/// Simple packet block, without a timestamp.
pub(crate) const SIMPLE_PACKET: u32 = 3;
/// Interface statistics block.
pub(crate) const STATISTICS: u32 = 5;
/// Enhanced packet block.
pub(crate) const ENHANCED_PACKET: u32 = 6;
/// Decryption secrets block.
pub(crate) const SECRETS: u32 = 10;
/// Secrets of TLS, as lines of a key log.
pub(crate) const TLS_KEY_LOG: u32 = 0x544c_534b;

/// The word after the header of a section, in the section's byte order.
pub(crate) const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// Option of interfaces: unit of their timestamps, a power of ten or of two.
pub(crate) const RESOLUTION: u16 = 9;
/// Option of interfaces: seconds to add to their timestamps.
pub(crate) const OFFSET: u16 = 14;
/// Options of statistics: packets dropped by the interface and by the operating system.
pub(crate) const DROPPED: [u16; 2] = [5, 7];
