#include "ingest/bounded_lines.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace watchdog::monitor {

Result<BoundedLines> BoundedLines::open(const std::filesystem::path& file) {
  std::error_code trouble;
  if (std::filesystem::is_directory(file, trouble)) {
    return Error{ErrorCode::not_found,
                 file.string() +
                     " is a directory, a file is needed. A folder of transcripts "
                     "is read by: watchdog-monitor follow AGENT FOLDER --once"};
  }
  BoundedLines lines;
  lines.file_ = file;
  lines.stream_.open(file);
  if (!lines.stream_)
    return Error{ErrorCode::not_found, file.string() + ": " + std::strerror(errno)};
  return lines;
}

Result<bool> BoundedLines::next(std::string& line, std::size_t bytes_max) {
  std::array<char, 65'536> part{};
  while (true) {
    line.clear();
    bool is_whole = false;
    while (!is_whole) {
      stream_.getline(part.data(), part.size());
      const auto count = static_cast<std::size_t>(stream_.gcount());
      if (stream_.bad()) {
        ++number_;
        return at_line({ErrorCode::unavailable, "the file cannot be read"});
      }
      is_whole = !stream_.fail() || stream_.eof() || count == 0;
      // The count of a whole line has its end in it, unless the file ends there.
      const auto kept = is_whole && !stream_.eof() && count > 0 ? count - 1 : count;
      if (!is_whole) stream_.clear();
      bytes_ += static_cast<std::int64_t>(count);
      if (line.size() + kept > bytes_max) {
        while (!is_whole) {  // the rest of it, so that the next line can be read
          stream_.getline(part.data(), part.size());
          bytes_ += static_cast<std::int64_t>(stream_.gcount());
          is_whole = !stream_.fail() || stream_.eof() || stream_.gcount() == 0;
          if (!is_whole && !stream_.bad()) stream_.clear();
        }
        ++number_;
        return at_line({ErrorCode::exhausted,
                        "the line has more than " + std::to_string(bytes_max) + " bytes"});
      }
      line.append(part.data(), kept);
    }
    if (line.empty() && stream_.eof()) return false;
    // A reader may ignore it (RFC 8259, section 8.1).
    if (number_ == 0 && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
    ++number_;
    if (line.find_first_not_of(" \t\r") != std::string::npos) return true;
    if (stream_.eof()) return false;
  }
}

Error BoundedLines::at_line(Error error) const {
  error.message = file_.string() + ":" + std::to_string(number_) + ": " + error.message;
  error.line = number_;
  return error;
}

}  // namespace watchdog::monitor
