#include "outputs/artifact_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <vector>

#include "files/sha256.h"

namespace watchdog {
namespace {

constexpr std::string_view gap_mark = "\nwatchdog-cut 1 ";
constexpr std::size_t number_digits = 20;
/// The mark, the digest, three numbers, the seal: each ends with a character between.
constexpr std::size_t sealed_bytes = gap_mark.size() + 65 + 3 * (number_digits + 1);
constexpr std::size_t footer_bytes = sealed_bytes + 65;

std::string number(std::uint64_t value) {
  const auto text = std::to_string(value);
  return std::string(number_digits - text.size(), '0') + text + ' ';
}

std::uint64_t read_number(std::string_view& text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + number_digits, value);
  text.remove_prefix(number_digits + 1);
  return value;
}

std::string footer_of(const ArtifactLayout& layout, std::string_view digest) {
  return std::string(gap_mark).append(digest).append(1, ' ').append(
      number(layout.given) + number(layout.first) + number(layout.turned));
}

Error torn(const std::string& digest, const std::string& what) {
  return {ErrorCode::corrupt, "artifact " + digest.substr(0, 12) + ": " + what};
}

}  // namespace

int ArtifactWriter::append(const OpenFile& file, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    std::uint64_t position = given_;
    std::uint64_t room = first_ - std::min(given_, first_);
    if (room == 0) {
      if (bytes.size() > ring_) {  // it would write over itself
        const auto skipped = bytes.size() - ring_;
        bytes.remove_prefix(skipped);
        given_ += skipped;
        if (bytes.empty()) break;
      }
      const auto turned = (given_ - first_) % ring_;
      position = first_ + turned;
      room = ring_ - turned;
    }
    const auto piece = bytes.substr(0, std::min<std::uint64_t>(room, bytes.size()));
    if (const int failed = file.write_at(piece, position)) return failed;
    bytes.remove_prefix(piece.size());
    given_ += piece.size();
  }
  return 0;
}

ArtifactLayout ArtifactWriter::layout() const noexcept {
  ArtifactLayout layout{.given = given_, .kept = std::min(given_, first_ + ring_), .first = first_};
  if (layout.cut() && ring_ > 0) layout.turned = (given_ - first_) % ring_;
  return layout;
}

int ArtifactWriter::finish(const OpenFile& file, std::string_view digest) const {
  const auto layout = this->layout();
  if (!layout.cut()) return 0;
  const auto footer = footer_of(layout, digest);
  if (const int failed = file.write_at(footer, layout.kept)) return failed;
  const auto seal = sha256_of_file(file, layout.kept + footer.size());
  if (!seal) return errno;
  return file.write_at(*seal + "\n", layout.kept + footer.size());
}

Result<ArtifactLayout> layout_of(const OpenFile& file, const std::string& digest, bool cut) {
  struct stat facts {};
  if (fstat(file.fd(), &facts) != 0) return file_error("artifact " + digest.substr(0, 12), errno);
  if (!S_ISREG(facts.st_mode)) return torn(digest, "is not a regular file");
  const auto bytes = static_cast<std::uint64_t>(facts.st_size);
  if (!cut) return ArtifactLayout{.given = bytes, .kept = bytes, .first = bytes};
  std::array<char, footer_bytes> buffer{};
  if (bytes < footer_bytes ||
      file.read_at(buffer.data(), buffer.size(), bytes - footer_bytes) != footer_bytes)
    return torn(digest, "ends before its footer");
  ArtifactLayout layout{.kept = bytes - footer_bytes};
  const std::string_view footer(buffer.data(), sealed_bytes);
  std::string_view rest = footer.substr(gap_mark.size() + 65);
  layout.given = read_number(rest);
  layout.first = read_number(rest);
  layout.turned = read_number(rest);
  const auto ring = layout.kept - std::min(layout.first, layout.kept);
  if (footer != footer_of(layout, digest) || layout.first > layout.kept || !layout.cut() ||
      (layout.turned != 0 && layout.turned >= ring))
    return torn(digest, "its footer is not what was written");
  return layout;
}

Result<void> verify(const OpenFile& file, const ArtifactLayout& layout, const std::string& digest) {
  const auto sealed = layout.kept + (layout.cut() ? sealed_bytes : 0);
  const auto found = sha256_of_file(file, sealed);
  if (!found) return file_error("artifact " + digest.substr(0, 12), errno);
  std::string wanted = digest;
  if (layout.cut() && file.read_at(wanted.data(), wanted.size(), sealed) < 0)
    return file_error("artifact " + digest.substr(0, 12), errno);
  if (*found == wanted) return {};
  return torn(digest, "what is there, " + std::to_string(layout.kept) + " bytes with SHA-256 " +
                          found->substr(0, 12) +
                          "…, is not what was put; repeat the call that gave it");
}

Result<std::string> read_part(const OpenFile& file, const ArtifactLayout& layout,
                              std::uint64_t offset, std::size_t bytes_max) {
  std::string bytes(std::min<std::uint64_t>(bytes_max, layout.kept - offset), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    std::uint64_t at = offset + done;
    std::uint64_t room = layout.first - std::min(at, layout.first);
    if (room == 0) {
      const auto ring = layout.kept - layout.first;
      const auto turned = (at - layout.first + layout.turned) % ring;
      at = layout.first + turned;
      room = ring - turned;
    }
    const auto wanted = std::min<std::uint64_t>(room, bytes.size() - done);
    const auto count = file.read_at(bytes.data() + done, wanted, at);
    if (count < 0) return file_error("artifact", errno);
    if (static_cast<std::uint64_t>(count) != wanted)
      return Error{ErrorCode::corrupt, "artifact: it became shorter while it was read"};
    done += wanted;
  }
  return bytes;
}

}  // namespace watchdog
