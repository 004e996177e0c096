// Reads a piece from the position on, up to its last line end. Without a line end the piece grows
// until the limit of a line, and then the line is skipped, over as many pieces as it takes. The
// position says whether a line is being skipped, so that a restart does not read its rest as lines.
#include "follow/transcript_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "codec/json.h"
#include "facts/digest.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t piece_bytes = 256UL * 1024;
constexpr std::int64_t head_bytes_max = 1'024;
constexpr std::int64_t tail_bytes_max = 256;

Error file_trouble(const std::filesystem::path& path, int code) {
  return {code == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable,
          "cannot read " + path.string() + ": " + std::strerror(code)};  // NOLINT: no other locale
}

/// Moves the position behind the end of a line that is too long.
Result<void> skip(TranscriptPosition& position, TranscriptFile::Piece& piece, bool is_all) {
  const auto end = piece.bytes.find('\n');
  const bool ends = end != std::string::npos;
  position.offset += static_cast<std::int64_t>(ends ? end + 1 : piece.bytes.size());
  position.is_skipping = !ends;
  piece.skipped = ends ? 1 : 0;
  piece.is_end = !ends && is_all;
  piece.bytes.clear();
  return {};
}

/// Splits the bytes at their line ends. The bytes end with one.
void split_lines(std::string_view bytes, std::vector<std::string_view>& lines) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    auto line = bytes.substr(0, end);
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") != std::string_view::npos) lines.push_back(line);
  }
}

}  // namespace

Result<TranscriptFile> TranscriptFile::open(const std::filesystem::path& path) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg,hicpp-vararg): POSIX
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ELOOP) return Error{ErrorCode::invalid, path.string() + " is a link"};
    return file_trouble(path, errno);
  }
  TranscriptFile file(descriptor);
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0) return file_trouble(path, errno);
  if (!S_ISREG(facts.st_mode))
    return Error{ErrorCode::invalid, path.string() + " is not a regular file"};
  file.device_ = facts.st_dev;
  file.inode_ = facts.st_ino;
  file.size_ = facts.st_size;
  file.changed_ =
      WallTime{Millis{facts.st_mtim.tv_sec * 1'000 + facts.st_mtim.tv_nsec / 1'000'000}};
  return file;
}

TranscriptFile::~TranscriptFile() {
  if (descriptor_ >= 0) close(descriptor_);
}
TranscriptFile::TranscriptFile(TranscriptFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      device_(other.device_),
      inode_(other.inode_),
      size_(other.size_),
      changed_(other.changed_) {}
TranscriptFile& TranscriptFile::operator=(TranscriptFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  device_ = other.device_;
  inode_ = other.inode_;
  size_ = other.size_;
  changed_ = other.changed_;
  return *this;
}

Result<void> TranscriptFile::fill(std::string& bytes, std::int64_t offset, std::size_t size) const {
  bytes.resize(size);
  std::size_t filled = 0;
  while (filled < size) {
    const auto got = pread(descriptor_, bytes.data() + filled, size - filled,
                           offset + static_cast<std::int64_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_trouble("a transcript", errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return {};
}

std::uint64_t TranscriptFile::head_digest(std::int64_t bytes) const {
  std::string head;
  if (!fill(head, 0, static_cast<std::size_t>(std::clamp<std::int64_t>(bytes, 0, head_bytes_max))))
    return 0;
  return digest_of(head);
}

/// A rewritten file may begin with the same line. It has other bytes here.
std::uint64_t TranscriptFile::tail_digest(std::int64_t offset) const {
  const auto size = std::min(offset, tail_bytes_max);
  std::string tail;
  if (!fill(tail, offset - size, static_cast<std::size_t>(size))) return 0;
  return digest_of(tail);
}

bool TranscriptFile::is_at(const TranscriptPosition& position) const {
  return position.device == device_ && position.inode == inode_ && position.offset >= 0 &&
         position.offset <= size_ && position.head_bytes <= position.offset &&
         head_digest(position.head_bytes) == position.head &&
         (position.tail == 0 || tail_digest(position.offset) == position.tail);
}

TranscriptPosition TranscriptFile::beginning() const noexcept {
  return {.device = device_, .inode = inode_, .head = digest_of("")};
}

Result<void> TranscriptFile::read(TranscriptPosition& position, Piece& piece) const {
  const auto before = position.offset;
  if (auto done = read_lines(position, piece); !done) return done;
  if (position.offset != before) position.tail = tail_digest(position.offset);
  return {};
}

Result<void> TranscriptFile::read_whole(TranscriptPosition& position, Piece& piece) const {
  piece = {};
  piece.is_end = true;
  const bool is_same_file = position.device == device_ && position.inode == inode_;
  if (size_ > transcript_whole_max) {
    piece.skipped = is_same_file && position.offset == size_ ? 0 : 1;
    position = beginning();
    position.offset = size_;
    return {};
  }
  if (auto filled = fill(piece.bytes, 0, static_cast<std::size_t>(size_)); !filled) return filled;
  const auto digest = digest_of(piece.bytes);
  const auto bytes = static_cast<std::int64_t>(piece.bytes.size());
  const bool is_known = is_same_file && position.offset == bytes && position.tail == digest;
  if (!is_known && is_json(piece.bytes)) {
    position = beginning();
    position.offset = bytes;
    position.tail = digest;
    piece.lines.emplace_back(piece.bytes);
    return {};
  }
  piece.is_half = !is_known;
  piece.bytes.clear();
  return {};
}

Result<void> TranscriptFile::read_lines(TranscriptPosition& position, Piece& piece) const {
  piece = {};
  for (auto wanted = piece_bytes;; wanted = std::min(wanted * 8, transcript_line_max + 1)) {
    if (auto filled = fill(piece.bytes, position.offset, wanted); !filled) return filled;
    const bool is_all = piece.bytes.size() < wanted;
    if (position.is_skipping) return skip(position, piece, is_all);
    const auto last = piece.bytes.rfind('\n');
    piece.is_end = is_all;
    if (last == std::string::npos && is_all) {
      piece.bytes.clear();
      return {};
    }
    if (last == std::string::npos && wanted <= transcript_line_max) continue;
    if (last == std::string::npos) {
      position.is_skipping = true;
      position.offset += static_cast<std::int64_t>(piece.bytes.size());
      piece.bytes.clear();
      return {};
    }
    piece.bytes.resize(last + 1);
    split_lines(piece.bytes, piece.lines);
    position.offset += static_cast<std::int64_t>(piece.bytes.size());
    break;
  }
  if (position.head_bytes < head_bytes_max) {
    position.head_bytes = std::min(position.offset, head_bytes_max);
    position.head = head_digest(position.head_bytes);
  }
  return {};
}

}  // namespace watchdog::monitor
