/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * morsel.hpp - libmorsel for C++17: objects and mappings that go by themselves
 *
 * What: morsel::object is a descriptor, morsel::mapping is where one is mapped. Errors are
 *       std::system_error with the words of morsel_strerror(). Nothing here is slower
 *       than the functions of morsel.h.
 * Who:  C++ programs that link with -lmorsel (pkg-config morsel).
 *
 * Objects and mappings are moved, not copied. A mapping stays when its object is gone.
 */
#ifndef MORSEL_HPP
#define MORSEL_HPP

#include <morsel.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace morsel {

using range = ::morsel_range;
using layout = ::morsel_layout;
using status = struct ::morsel_stat;

/** fail() - throw what errno and a call say. */
[[noreturn]] inline void fail(morsel_call call, int err = errno)
{
	throw std::system_error(err, std::generic_category(), ::morsel_strerror(call, err));
}

/** supported() - does the running kernel have morsels? */
inline bool supported() noexcept
{
	return ::morsel_supported();
}

/** mapping - a morsel that is mapped, until this goes. */
class mapping {
public:
	mapping() noexcept = default;
	explicit mapping(const ::morsel_mapping &found) noexcept : found_(found) {}
	mapping(mapping &&other) noexcept : found_(std::exchange(other.found_, {})) {}
	mapping &operator=(mapping &&other) noexcept
	{
		std::swap(found_, other.found_);
		return *this;
	}
	~mapping()
	{
		if (found_.at)
			::morsel_unmap(&found_);
	}

	/** data() - where it begins; nullptr: nothing is mapped. */
	std::byte *data() const noexcept { return static_cast<std::byte *>(found_.at); }
	/** length() - in bytes, whole units. */
	std::size_t length() const noexcept { return found_.length; }

private:
	::morsel_mapping found_{};
};

/** object - a morsel: until this, all mappings and its name go, if it has one. */
class object {
public:
	/** Make one; size in bytes. Throws std::system_error. */
	object(const std::string &name, std::uint64_t size, const layout &chosen = {})
		: fd_(::morsel_create(name.c_str(), size, &chosen))
	{
		if (fd_ < 0)
			fail(MORSEL_CALL_CREATE);
	}
	/** create_at() - make one with a name, see morsel_create_at(). */
	static object create_at(const std::string &path, mode_t mode, std::uint64_t size,
				const layout &chosen = {})
	{
		int fd = ::morsel_create_at(path.c_str(), mode, size, &chosen);

		if (fd < 0)
			fail(MORSEL_CALL_OPEN);
		return object(fd);
	}

	/** open() - find one by its name. flags: O_RDWR or O_RDONLY. */
	static object open(const std::string &path, int flags = O_RDWR)
	{
		int fd = ::morsel_open(path.c_str(), flags);

		if (fd < 0)
			fail(MORSEL_CALL_OPEN);
		return object(fd);
	}

	/** copy() - another one that has what this has now, see morsel_copy(). */
	object copy(const std::string &name) const
	{
		int made = ::morsel_copy(fd_, name.c_str());

		if (made < 0)
			fail(MORSEL_CALL_COPY);
		return object(made);
	}

	/** copy_at() - the same with a name, see morsel_copy_at(). */
	object copy_at(const std::string &path, mode_t mode) const
	{
		int made = ::morsel_copy_at(fd_, path.c_str(), mode);

		if (made < 0)
			fail(MORSEL_CALL_COPY);
		return object(made);
	}

	/** Take over a descriptor that came from somewhere else. */
	explicit object(int fd) noexcept : fd_(fd) {}
	object(object &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
	object &operator=(object &&other) noexcept
	{
		std::swap(fd_, other.fd_);
		return *this;
	}
	~object()
	{
		if (fd_ >= 0)
			::close(fd_);
	}

	/** fd() - its descriptor, which stays this object's. */
	int fd() const noexcept { return fd_; }

	/** map() - map all of it. prot: as of mmap(2). */
	mapping map(int prot = PROT_READ | PROT_WRITE) const
	{
		::morsel_mapping found{};

		if (::morsel_map(fd_, prot, &found))
			fail(MORSEL_CALL_MAP);
		return mapping(found);
	}

	/** populate() - make memory where there is none. */
	void populate(const std::vector<range> &ranges) const
	{
		if (::morsel_populate(fd_, ranges.data(), ranges.size(), nullptr))
			fail(MORSEL_CALL_POPULATE);
	}

	/** depopulate() - take memory away from all who have it mapped. */
	void depopulate(const std::vector<range> &ranges) const
	{
		if (::morsel_depopulate(fd_, ranges.data(), ranges.size(), nullptr))
			fail(MORSEL_CALL_DEPOPULATE);
	}

	/** depopulate_async() - the same; the memory is free later, or after fsync(2). */
	void depopulate_async(const std::vector<range> &ranges) const
	{
		if (::morsel_depopulate_async(fd_, ranges.data(), ranges.size(), nullptr))
			fail(MORSEL_CALL_DEPOPULATE);
	}

	/** depopulate_lazy() - the same, contents are undefined then; layout: lazy. */
	void depopulate_lazy(const std::vector<range> &ranges) const
	{
		if (::morsel_depopulate_lazy(fd_, ranges.data(), ranges.size(), nullptr))
			fail(MORSEL_CALL_DEPOPULATE);
	}

	/** destroy() - take all memory away for good. force: also if somebody has it mapped. */
	void destroy(bool force = false) const
	{
		if (::morsel_destroy(fd_, force ? MORSEL_FORCE : 0))
			fail(MORSEL_CALL_DESTROY);
	}

	/** stat() - what it has now. */
	status stat() const
	{
		status found{};

		if (::morsel_stat(fd_, &found))
			fail(MORSEL_CALL_STAT);
		return found;
	}

private:
	int fd_;
};

} // namespace morsel

#endif /* MORSEL_HPP */
