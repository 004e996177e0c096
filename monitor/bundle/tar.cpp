#include "bundle/tar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace watchdog::monitor {
namespace {

constexpr std::size_t block_bytes = 512;
constexpr std::string_view magic = "ustar";

/// A field of a header: where it begins, and its size.
struct Field {
  std::size_t at;
  std::size_t bytes;
};
constexpr Field name_field{0, 100};
constexpr Field mode_field{100, 8};
constexpr Field user_field{108, 8};
constexpr Field group_field{116, 8};
constexpr Field size_field{124, 12};
constexpr Field time_field{136, 12};
constexpr Field sum_field{148, 8};
constexpr Field kind_field{156, 1};
constexpr Field magic_field{257, 6};
constexpr Field version_field{263, 2};

using Header = std::array<char, block_bytes>;

void put(Header& header, Field field, std::string_view text) {
  std::copy_n(text.begin(), std::min(text.size(), field.bytes), header.begin() + field.at);
}

/// Octal digits, and a NUL.
void put_number(Header& header, Field field, std::uint64_t number) {
  std::string digits(field.bytes - 1, '0');
  for (auto at = digits.rbegin(); at != digits.rend() && number > 0; ++at, number /= 8)
    *at = static_cast<char>('0' + number % 8);
  put(header, field, digits);
}

std::string_view text_at(std::string_view header, Field field) {
  const auto text = header.substr(field.at, field.bytes);
  return text.substr(0, text.find('\0'));
}

/// The sum of the header's bytes, of which those of the sum itself count as blanks.
std::uint64_t sum_of(std::string_view header) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < header.size(); ++at) {
    const bool is_own = at >= sum_field.at && at < sum_field.at + sum_field.bytes;
    sum += is_own ? ' ' : static_cast<unsigned char>(header[at]);
  }
  return sum;
}

std::optional<std::uint64_t> number_at(std::string_view header, Field field) {
  const auto digits = text_at(header, field);
  std::uint64_t number = 0;
  const auto [end, fault] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, 8);
  if (fault != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

Header header_of(std::string_view folder, const NamedFile& file, WallTime at) {
  Header header{};
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count();
  put(header, name_field, std::string(folder) + "/" + file.name);
  put_number(header, mode_field, 0600);
  put_number(header, user_field, 0);
  put_number(header, group_field, 0);
  put_number(header, size_field, file.content.size());
  put_number(header, time_field, static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 0)));
  put(header, kind_field, "0");
  put(header, magic_field, magic);
  put(header, version_field, "00");
  // Six digits, a NUL and a blank: what every reader expects here.
  put_number(header, {sum_field.at, sum_field.bytes - 1}, sum_of({header.data(), header.size()}));
  put(header, {sum_field.at + sum_field.bytes - 1, 1}, " ");
  return header;
}

std::size_t padded(std::size_t bytes) {
  return (bytes + block_bytes - 1) / block_bytes * block_bytes;
}

bool is_plain(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '.' || letter == '_' || letter == '-';
}

}  // namespace

std::string file_name_of(std::string_view text, std::size_t bytes_max) {
  std::string name;
  for (const char letter : text) {
    const char shown = is_plain(letter) ? letter : '-';
    const bool is_led = name.empty() && (shown == '-' || shown == '.');
    const bool is_repeated = shown == '-' && name.ends_with('-');
    if (!is_led && !is_repeated && name.size() < bytes_max) name += shown;
  }
  while (name.ends_with('-')) name.pop_back();
  return name.empty() ? "session" : name;
}

std::string tar_of(std::string_view folder, const std::vector<NamedFile>& files, WallTime at) {
  std::string archive;
  for (const auto& file : files) {
    const auto header = header_of(folder, file, at);
    archive.append(header.data(), header.size());
    archive += file.content;
    archive.resize(padded(archive.size()));
  }
  archive.resize(archive.size() + 2 * block_bytes);
  return archive;
}

std::optional<std::vector<NamedFile>> files_in_tar(std::string_view archive) {
  std::vector<NamedFile> files;
  while (archive.size() >= block_bytes) {
    const auto header = archive.substr(0, block_bytes);
    if (header.front() == '\0') return files;
    const auto bytes = number_at(header, size_field);
    const auto sum = number_at(header, sum_field);
    if (text_at(header, magic_field) != magic || !bytes || sum != sum_of(header))
      return std::nullopt;
    archive.remove_prefix(block_bytes);
    if (*bytes > archive.size() || padded(*bytes) > archive.size()) return std::nullopt;
    const auto path = text_at(header, name_field);
    files.push_back(
        {std::string(path.substr(path.rfind('/') + 1)), std::string(archive.substr(0, *bytes))});
    archive.remove_prefix(padded(*bytes));
  }
  return std::nullopt;
}

}  // namespace watchdog::monitor
