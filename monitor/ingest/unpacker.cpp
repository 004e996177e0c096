#include "ingest/unpacker.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

namespace watchdog::monitor {
namespace {

/// gzip with one or more members, or zlib.
class Inflater final : public Unpacker {
 public:
  Inflater() {
    constexpr int gzip_or_zlib = 32 + MAX_WBITS;
    if (inflateInit2(&stream_, gzip_or_zlib) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() override { inflateEnd(&stream_); }

 protected:
  Step step(std::string_view& bytes, char* piece, std::size_t size_max) override {
    if (ended_ && inflateReset(&stream_) != Z_OK) return {.is_broken = true};
    // zlib's interface is older than const; it only reads.
    stream_.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    stream_.next_out = reinterpret_cast<unsigned char*>(piece);
    stream_.avail_out = static_cast<uInt>(size_max);
    const auto result = inflate(&stream_, Z_NO_FLUSH);
    bytes.remove_prefix(bytes.size() - stream_.avail_in);
    ended_ = result == Z_STREAM_END;
    return {.size = size_max - stream_.avail_out,
            .is_broken = result != Z_OK && !ended_ && result != Z_BUF_ERROR,
            .is_end = ended_};
  }

 private:
  z_stream stream_{};
  bool ended_ = false;  ///< A member did; bytes that follow are another one.
};

}  // namespace

Unpacker::Fed Unpacker::feed(std::string_view bytes, std::string& text, std::size_t bytes_max) {
  std::array<char, 64 * 1024> piece;
  // Content may be left although all bytes were taken.
  bool has_more = !bytes.empty();
  while (fed_ == Fed::good && has_more) {
    const auto [size, is_broken, is_end] = step(bytes, piece.data(), piece.size());
    const auto room = bytes_max - std::min(text.size(), bytes_max);
    text.append(piece.data(), std::min(size, room));
    is_whole_ = is_end;
    if (is_broken) fed_ = Fed::broken;
    if (size > room) fed_ = Fed::full;
    has_more = !bytes.empty() || (size == piece.size() && !is_end);
  }
  return fed_;
}

std::unique_ptr<Unpacker> unpacker_for(std::string_view coding) {
  std::string name(coding);
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (name == "gzip" || name == "x-gzip" || name == "deflate") return std::make_unique<Inflater>();
  if (name == "br") return brotli_unpacker();
  return name == "zstd" ? zstd_unpacker() : nullptr;
}

}  // namespace watchdog::monitor
