// An output that comes in pieces. Small ones are buffered and touch the disk at their end; larger
// ones are written to `tmp` as they come. The digest, and with it the name, is known at the end.
#include <cerrno>
#include <memory>
#include <utility>

#include "files/sha256.h"
#include "outputs/artifact_store_state.h"
#include "privacy/redactor.h"

namespace watchdog {
namespace {

constexpr std::size_t sink_buffer_bytes = 64U << 10U;

}  // namespace

struct ArtifactStore::Sink::State {
  explicit State(std::shared_ptr<ArtifactStore::State> owner)
      : store(std::move(owner)),
        writer(store->limits.artifact_bytes_max),
        redactor([this](std::uint64_t at, std::string_view secret) { take(at, secret); }) {
    buffer.reserve(sink_buffer_bytes);
  }

  void add(std::string_view clean) {
    digest.add(clean);
    given += clean.size();
    if (buffer.size() + clean.size() > sink_buffer_bytes) flush();
    if (clean.size() > sink_buffer_bytes) {
      pass(clean);
    } else {
      buffer.append(clean);
    }
  }
  /// More are not remembered than the store would.
  void take(std::uint64_t at, std::string_view secret) {
    constexpr std::size_t taken_max = 100'000;
    if (taken.size() == taken_max) has_too_many = true;
    if (!has_too_many) taken.push_back({at, std::string(secret)});
  }
  /// Small outputs touch the disk at their end only.
  void flush() noexcept {
    if (trouble == 0 && !pending.file()) {
      pending = store->new_file();
      if (!pending.file()) trouble = errno;
    }
    pass(buffer);
    buffer.clear();
  }
  void pass(std::string_view bytes) noexcept {
    if (trouble == 0) trouble = writer.append(pending.file(), bytes);
    if (trouble != 0) pending = {};  // what is there is of no use, and the disk may be full of it
  }

  std::shared_ptr<ArtifactStore::State> store;
  ArtifactWriter writer;
  PendingFile pending;
  Redactor redactor;
  std::vector<TakenSecret> taken;
  bool has_too_many = false;
  Sha256 digest;
  std::string buffer;
  std::uint64_t given = 0;
  int trouble = 0;
  bool finished = false;
};

ArtifactStore::Sink::Sink(std::unique_ptr<State> state) : state_(std::move(state)) {}
ArtifactStore::Sink::~Sink() = default;
ArtifactStore::Sink::Sink(Sink&&) noexcept = default;
ArtifactStore::Sink& ArtifactStore::Sink::operator=(Sink&&) noexcept = default;

ArtifactStore::Sink ArtifactStore::sink() {
  return Sink(std::make_unique<Sink::State>(state_));
}

void ArtifactStore::Sink::write(std::string_view bytes) noexcept {
  if (!state_->finished) state_->add(state_->redactor.feed(bytes));
}

Result<ArtifactRef> ArtifactStore::Sink::finish(std::string_view media_type) {
  if (std::exchange(state_->finished, true))
    return Error{ErrorCode::invalid, "this output was stored already"};
  state_->add(state_->redactor.rest());
  const auto digest = state_->digest.digits();
  auto& store = *state_->store;
  if (!state_->has_too_many) store.remember(digest, std::move(state_->taken));
  auto ref = store.existing(digest, state_->given);
  if (!ref) {
    state_->flush();
    if (state_->trouble != 0) {
      auto error = store.failed(state_->trouble);
      error.message += "; " + std::to_string(state_->given) + " bytes were to be kept";
      return error;
    }
    auto added = store.add(state_->pending, state_->writer, digest);
    if (!added) return added.error();
    ref = std::move(*added);
  }
  ref->media_type = media_type;
  state_->pending = {};
  return *ref;
}

}  // namespace watchdog
