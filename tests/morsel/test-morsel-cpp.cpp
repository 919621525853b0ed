// SPDX-License-Identifier: GPL-2.0-only
/*
 * test-morsel-cpp.cpp - what morsel.hpp adds: things go by themselves, errors have words
 *
 * Prints TAP. Without morsels in the kernel only the errors can be seen; with --here that
 * is a failure.
 */
#include <morsel.hpp>

#include <cstdio>
#include <cstring>
#include <fcntl.h>

static unsigned int number, bad;

static void report(bool good, const char *name)
{
	std::printf("%sok %u - %s\n", good ? "" : "not ", ++number, name);
	bad += !good;
}

template <typename Call> static void fails(Call call, int err, const char *words, const char *name)
{
	try {
		call();
		report(false, name);
	} catch (const std::system_error &error) {
		report(error.code().value() == err && std::strstr(error.what(), words), name);
	}
}

static void all()
{
	const std::size_t page = 4096;
	int fd;
	{
		morsel::object object("test", 3 << 20);
		morsel::mapping mapping = object.map();
		morsel::object other = std::move(object);

		fd = other.fd();
		report(object.fd() < 0 && fd >= 0, "an object is moved");
		report(mapping.length() == 4 << 20, "a mapping has whole units");
		other.populate({ { 0, page }, { 8 * page, page } });
		mapping.data()[0] = std::byte{ 9 };
		report(other.stat().pages == 2, "ranges are populated");
		morsel::mapping moved = std::move(mapping);
		report(!mapping.data() && moved.data()[0] == std::byte{ 9 }, "a mapping is moved");
		report(other.stat().mappings == 1, "a mapping that was moved is one");
		other.depopulate({ { 0, page } });
		report(moved.data()[0] == std::byte{ 0 }, "ranges are depopulated");
		{
			morsel::object copy = other.copy("copy");
			morsel::mapping its = copy.map();

			moved.data()[0] = std::byte{ 5 };
			its.data()[page] = std::byte{ 6 };
			report(its.data()[0] == std::byte{ 0 } && moved.data()[page] == std::byte{ 0 },
			       "an object is copied");
			fails([&] { other.copy_at("/nosuch/copy", 0600); }, ENOENT, "no such morsel",
			      "a copy in a folder that is not there");
		}
		fails([&] { other.depopulate_lazy({ { 0, page } }); }, EINVAL, "",
		      "an object that is not lazy");
		fails([&] { other.populate({ { 64 << 20, page } }); }, EINVAL, "behind the morsel",
		      "a range behind the end");
		fails([&] { other.destroy(); }, EBUSY, "MORSEL_FORCE", "an object that is mapped stays");
		{
			morsel::mapping second = other.map(PROT_READ);
			report(other.stat().mappings == 2, "there are two");
		}
		report(other.stat().mappings == 1, "a mapping goes by itself");
	}
	report(::fcntl(fd, F_GETFD) < 0, "an object goes by itself");
}

int main(int argc, char **argv)
{
	bool here = argc > 1 && !std::strcmp(argv[1], "--here");

	if (here || morsel::supported())
		all();
	else
		fails([] { morsel::object object("test", 1); }, ENOSYS, "boot one",
		      "a kernel without morsels");
	fails([] { morsel::object(-1).map(); }, EBADF, "not open", "no descriptor");
	fails([] { morsel::object::open("/etc/passwd", O_RDONLY); }, EINVAL, "no morsel",
	      "a name of something else");
	fails([] { morsel::object::create_at("/nosuch/pool", 0600, 1); }, ENOENT, "no such morsel",
	      "a folder that is not there");
	std::printf("1..%u\n", number);
	return bad != 0;
}
