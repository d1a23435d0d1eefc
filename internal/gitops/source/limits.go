package source

// Limits bound what a tree may cost; zero fields are the defaults.
type Limits struct {
	// Files is the most files an artifact may hold, 50,000 by default. Four
	// times as many entries may be listed before ignore rules apply.
	Files int
	// FileBytes is the largest file an artifact may hold, 32 MiB by default.
	FileBytes int64
	// TotalBytes is the most an artifact may hold, 1 GiB by default.
	TotalBytes int64
}

const (
	// maxPath bounds a path; systems refuse longer ones.
	maxPath = 4096
	// maxTreeObject bounds one Git tree object, some 500,000 entries.
	maxTreeObject = 32 << 20
	// maxRules bounds a file with ignore rules, maxMatches the product of rules
	// and files, which is what matching costs.
	maxRules   = 1 << 20
	maxMatches = 100_000_000
	// maxSmallFile bounds Git's own small text files.
	maxSmallFile = 4 << 20
)

func (l Limits) orDefault() Limits {
	if l.Files <= 0 {
		l.Files = 50_000
	}
	if l.FileBytes <= 0 {
		l.FileBytes = 32 << 20
	}
	if l.TotalBytes <= 0 {
		l.TotalBytes = 1 << 30
	}
	return l
}

// listed is how many entries a tree may have.
func (l Limits) listed() int { return 4 * l.Files }

func (l Limits) tooMany() error {
	return fail(TooLarge, "the tree has more than %d files and folders, the limit of what is listed: open a part of it, or raise the limit", l.listed())
}
