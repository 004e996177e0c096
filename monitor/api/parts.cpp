#include "api/parts.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace watchdog::monitor {
namespace {

/// The parts of one body after its first.
class Parts final : public BodySource, public std::enable_shared_from_this<Parts> {
 public:
  Parts(Backend& backend, JsonWriter out, WritePart write)
      : backend_(backend), out_(std::move(out)), write_(std::move(write)) {
    ready_ = std::make_shared<const std::string>(out_.finish());
  }

  void begin(std::function<void()> wake) override { wake_ = std::move(wake); }

  [[nodiscard]] std::vector<Piece> drain() override {
    std::vector<Piece> pieces;
    {
      const std::lock_guard guard(mutex_);
      if (ready_) pieces.push_back(std::exchange(ready_, nullptr));
      if (!pieces.empty() || reading_ || read_ != BodyState::open) return pieces;
      reading_ = true;
    }
    backend_.read([self = shared_from_this()](StoreReader& reader) { self->write(reader); },
                  [self = shared_from_this()](const Error&) { self->done(BodyState::broken); });
    return pieces;
  }

  [[nodiscard]] BodyState state() const override {
    const std::lock_guard guard(mutex_);
    return ready_ ? BodyState::open : read_;
  }

 private:
  void write(StoreReader& reader) {
    const auto more = write_(reader, out_);
    if (!more) return done(BodyState::broken);
    done(*more ? BodyState::open : BodyState::complete,
         std::make_shared<const std::string>(out_.finish()));
  }

  void done(BodyState state, Piece piece = nullptr) {
    {
      const std::lock_guard guard(mutex_);
      ready_ = std::move(piece);
      read_ = state;
      reading_ = false;
    }
    wake_();
  }

  Backend& backend_;
  std::function<void()> wake_;
  // Used by the reading thread:
  JsonWriter out_;
  WritePart write_;

  mutable std::mutex mutex_;  ///< Guards the rest.
  Piece ready_;
  bool reading_ = false;
  BodyState read_ = BodyState::open;  ///< After what is ready.
};

}  // namespace

void reply_in_parts(const CallPtr& call, WritePart write) {
  reading(call, [call, write = std::move(write)](StoreReader& reader) mutable {
    JsonWriter out;
    // A command's file has no waiting client, and takes no pieces.
    const bool whole = call->request.peer.empty();
    while (true) {
      const auto more = write(reader, out);
      if (!more) return call->reply(error_response(more.error()));
      if (!*more) return call->reply(json_response(out));
      if (!whole) break;
    }
    auto source = std::make_shared<Parts>(call->backend, std::move(out), std::move(write));
    call->reply({.source = std::move(source), .ends = true});
  });
}

void reply_with_rows(const CallPtr& call, SessionFilter filter, int at_once,
                     std::function<void(JsonWriter&)> begin,
                     std::function<Result<std::string>(StoreReader&, const SessionRow&)> text) {
  const int limit = filter.limit;
  reply_in_parts(
      call,
      [filter = std::move(filter), left = limit, at_once, begin = std::move(begin),
       text = std::move(text)](StoreReader& reader, JsonWriter& out) mutable -> Result<bool> {
        if (begin) std::exchange(begin, nullptr)(out);
        filter.limit = std::min(left, at_once);
        const auto rows = reader.sessions(filter);
        if (!rows) return rows.error();
        for (const auto& row : *rows) {
          const auto made = text(reader, row);
          if (!made) return made.error();
          out.raw(*made);
        }
        const auto count = static_cast<int>(rows->size());
        left -= count;
        if (count == filter.limit && left > 0) {
          filter.after = rows->back().key;
          return true;
        }
        out.close_array().key("next");
        count == filter.limit ? out.value(rows->back().key) : out.value(nullptr);
        out.close_object();
        return false;
      });
}

}  // namespace watchdog::monitor
