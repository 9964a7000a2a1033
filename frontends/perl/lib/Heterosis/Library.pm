package Heterosis::Library;

use v5.26;
use warnings;

use Carp qw(croak);
use Compress::Zlib ();
use Config         qw(%Config);
use Cwd            ();
use FFI::Platypus 2.00;

our $VERSION = '0.1.0';

use constant {
    INTERFACE => 2,
    SEAL      => 24,         # bytes that end every library: magic, version, CRC-32, size before it
    BLOCK     => 1 << 20,
};

# Families of processors by their numbers of ELF's list, and as Perl says what it was built for.
my %families = ( 62 => [ 'x86-64', qr/x86_64|amd64/ ], 183 => [ 'AArch64', qr/aarch64|arm64/ ] );

my %functions = (
    open_with       => [ [ 'sint64', 'string', 'sint64*' ] => 'opaque' ],
    close           => [ ['opaque'] => 'sint64' ],
    threads         => [ ['opaque'] => 'sint64' ],
    pool_bytes      => [ [ 'opaque', 'sint64' ] => 'sint64' ],
    pool_start      => [ [ 'opaque', 'opaque', 'sint64' ] => 'sint64' ],
    pool_stop       => [ [ 'opaque', 'opaque' ] => 'sint64' ],
    name            => [ ['opaque'] => 'string' ],
    entries         => [ ['opaque'] => 'sint64' ],
    entry_name      => [ [ 'opaque', 'sint64' ] => 'string' ],
    workspace_bytes => [ [ 'opaque', 'sint64' ] => 'sint64' ],
    run_with        => [ [ 'opaque', 'sint64', ('opaque') x 4 ] => 'sint64' ],
    message         => [ [ 'opaque', 'sint64', 'sint64' ] => 'string' ],
    sizes           => [ [ 'opaque', 'sint64' ] => 'sint64' ],
    size_name       => [ [ 'opaque', ('sint64') x 2 ] => 'string' ],
    size_least      => [ [ 'opaque', ('sint64') x 2 ] => 'sint64' ],
    size_most       => [ [ 'opaque', ('sint64') x 2 ] => 'sint64' ],
    at_bytes        => [ [ 'opaque', 'sint64' ] => 'sint64' ],
    at              => [ [ 'opaque', 'sint64', 'sint64[]', 'opaque', 'sint64*' ] => 'opaque' ],
);
for my $side (qw(input output)) {
    $functions{"${side}s"}       = [ [ 'opaque', 'sint64' ] => 'sint64' ];
    $functions{"${side}_name"}   = [ [ 'opaque', ('sint64') x 2 ] => 'string' ];
    $functions{"${side}_dtype"}  = [ [ 'opaque', ('sint64') x 2 ] => 'sint64' ];
    $functions{"${side}_rank"}   = [ [ 'opaque', ('sint64') x 2 ] => 'sint64' ];
    $functions{"${side}_bytes"}  = [ [ 'opaque', ('sint64') x 2 ] => 'sint64' ];
    $functions{"${side}_extent"} = [ [ 'opaque', ('sint64') x 3 ] => 'sint64' ];
    $functions{"${side}_extent_text"} = [ [ 'opaque', ('sint64') x 3 ] => 'string' ];
}

sub new {
    my ( $class, $path, %options ) = @_;
    my $weights = $path =~ s/\.so$/.weights/r;
    _check($_) for $path, grep { -e } $weights;
    my $functions = _functions($path);
    my $code      = 0;
    my $library   = $functions->{open_with}->call( INTERFACE, $weights, \$code )
      // croak "$path: ", $functions->{message}->call( undef, 0, $code );
    my $ask = _asking( $functions, $library );
    my $threads = $options{threads} // $ask->('threads');
    my $pool    = Heterosis::Library::Pool->new( $ask, $threads );
    my @entries =
      map { Heterosis::Library::Entry->new( $ask, $_, $pool ) } 0 .. $ask->('entries') - 1;
    return bless {
        path => $path, name => $ask->('name'), threads => $threads, entries => \@entries,
    }, $class;
}

# What asks a library, or what stands for it where a program has some sizes.
sub _asking {
    my ( $functions, $library, $memory ) = @_;
    return sub {
        local $_ = $memory;    # which lives as long as it is asked
        my ( $name, @rest ) = @_;
        return _prepared( $functions, $library, @rest ) if $name eq 'prepared';
        return $functions->{$name}->call( $library, @rest );
    };
}

sub _prepared {
    my ( $functions, $library, $number, @sizes ) = @_;
    my $bytes  = $functions->{at_bytes}->call( $library, $number );
    my $memory = Heterosis::Library::Entry::_aligned($bytes);
    my $code   = 0;
    my $found  = $functions->{at}->call( $library, $number, \@sizes, $memory->[0], \$code );
    if ( !defined $found ) {
        my $name  = $functions->{entry_name}->call( $library, $number );
        my @given = map { $functions->{size_name}->call( $library, $number, $_ ) . " = $sizes[$_]" }
          0 .. $#sizes;
        croak "$name at ", join( ', ', @given ), ': ',
          $functions->{message}->call( $library, $number, $code );
    }
    return _asking( $functions, $found, $memory );
}

sub name    { $_[0]{name} }
sub threads { $_[0]{threads} }
sub entries { @{ $_[0]{entries} } }

# The program of a name; the first one without a name.
sub entry {
    my ( $self, $name ) = @_;
    return $self->{entries}[0] unless defined $name;
    my ($found) = grep { $_->name eq $name } $self->entries;
    return $found // croak "$self->{path}: no entry '$name'; there are:\n", $self->describe;
}

sub describe { join "\n", map { $_->describe } $_[0]->entries }

sub _functions {
    my ($path) = @_;
    my $ffi = FFI::Platypus->new( api => 2, lib => Cwd::abs_path($path) );
    my %found;
    for my $name ( keys %functions ) {
        my $address = $ffi->find_symbol("heterosis_$name")
          // croak "$path: heterosis_$name is missing, or the file cannot be loaded";
        $found{$name} = $ffi->function( $address, @{ $functions{$name} } );
    }
    return \%found;
}

# Refuse files that are damaged: the system's loader would follow whatever stands there.
sub _check {
    my ($path) = @_;
    open my $file, '<:raw', $path or croak "$path: $!";
    my $left = ( -s $file ) - SEAL;
    my ( $size, $sum ) = ( $left, Compress::Zlib::crc32('') );
    while ( $left > 0 ) {
        my $read = read $file, my $block, $left < BLOCK ? $left : BLOCK or last;
        $sum = Compress::Zlib::crc32( $block, $sum );
        $left -= $read;
    }
    read $file, my $seal, SEAL;
    croak "$path is cut short, stripped, or not a library that heterosis.export has written"
      unless length $seal == SEAL && $seal =~ /^HETEROSO/;
    my ( $version, $said, $counted ) = unpack 'x8 V V Q<', $seal;
    croak "$path is damaged: its size or its checksum is wrong. Copy it again"
      unless $said == $sum && $counted == $size;
    croak "$path has version $version of heterosis.h; this module expects ", INTERFACE
      unless $version == INTERFACE;
    seek $file, 0, 0;
    read $file, my $begin, 20;
    my ( $magic, $number ) = unpack 'a4 x14 S<', $begin;
    my ( $family, $system ) = @{ $families{$number} // ['one that is not known'] };
    croak "$path is for another family of processors: $family; this one is $Config{archname}. ",
      'Export the library with another target, or use such a machine'
      if $magic eq "\x7fELF" && ( !$system || $Config{archname} !~ /$system/ );
    return;
}

package Heterosis::Library::Pool;

use Carp                  qw(croak);
use FFI::Platypus::Buffer qw(scalar_to_pointer);

# Threads of a library, which is closed when they have ended.
sub new {
    my ( $class, $ask, $threads ) = @_;
    my $bytes = $ask->( pool_bytes => $threads );
    croak "got threads=$threads; expected 1 to ", $ask->('threads') if $bytes < 0;
    my $self = bless {
        ask => $ask, process => $$, memory => Heterosis::Library::Entry::_aligned($bytes),
    }, $class;
    $ask->( pool_start => $self->address, $threads );
    return $self;
}

sub address { $_[0]{memory}[0] }

sub DESTROY {
    my ($self) = @_;
    return if ${^GLOBAL_PHASE} eq 'DESTRUCT';    # threads end with their process
    $self->{ask}->( pool_stop => $self->address ) if $self->{process} == $$;
    $self->{ask}->('close');
    return;
}

package Heterosis::Library::Entry;

use Carp                  qw(croak);
use FFI::Platypus::Buffer qw(grow scalar_to_pointer set_used_length);
use List::Util            qw(product);
use Scalar::Util          qw(looks_like_number);

use constant ALIGNMENT => 64;    # of a workspace

# By their numbers in heterosis.h: name, letter of pack, bytes. 16-bit floats are given as bits.
my @dtypes = (
    [ bool  => 'C', 1 ], [ int8    => 'c', 1 ], [ uint8    => 'C', 1 ],
    [ int32 => 'l', 4 ], [ int64   => 'q', 8 ], [ float16  => 'S', 2 ],
    [ bfloat16 => 'S', 2 ], [ float32 => 'f', 4 ], [ float64 => 'd', 8 ],
    [ int16 => 's', 2 ], [ uint16 => 'S', 2 ], [ uint32 => 'L', 4 ], [ uint64 => 'Q', 8 ],
);

sub new {
    my ( $class, $ask, $number, $pool ) = @_;
    my $self = bless {
        ask       => $ask,
        pool      => $pool,
        number    => $number,
        name      => $ask->( entry_name => $number ),
        inputs    => _arrays( $ask, input  => $number ),
        outputs   => _arrays( $ask, output => $number ),
    }, $class;
    $self->{sizes} = [ map { _size( $ask, $number, $_ ) } 0 .. $ask->( sizes => $number ) - 1 ];
    $self->{workspace} = _aligned( $ask->( workspace_bytes => $number ) ) unless $self->sizes;
    return $self;
}

sub _size {
    my ( $ask, @where ) = @_;
    return { map { $_ => $ask->( "size_$_", @where ) } qw(name least most) };
}

# The program for arrays of some sizes, in their order.
sub at {
    my ( $self, @sizes ) = @_;
    my $names = join ', ', map { $_->{name} } $self->sizes;
    croak "$self->{name}: got ", scalar @sizes, " sizes; expected ($names)"
      unless @sizes == $self->sizes;
    return $self unless @sizes;
    my $ask = $self->{ask}->( prepared => $self->{number}, @sizes );
    return ( ref $self )->new( $ask, $self->{number}, $self->{pool} );
}

sub _known {
    my ($self) = @_;
    croak "$self->{name}: its sizes are not known; run what at(",
      join( ', ', map { "\$$_->{name}" } $self->sizes ), ') gives'
      if $self->sizes;
    return;
}

sub name    { $_[0]{name} }
sub sizes   { @{ $_[0]{sizes} } }
sub inputs  { @{ $_[0]{inputs} } }
sub outputs { @{ $_[0]{outputs} } }

# Run the program on references to lists of numbers, and give such.
sub run {
    my ( $self, @given ) = @_;
    $self->_known;
    my @inputs = @{ $self->{inputs} };
    croak "$self->{name}: got ", scalar @given, ' inputs; expected lists for ', $self->describe
      unless @given == @inputs && !grep { ref ne 'ARRAY' } @given;
    for my $i ( 0 .. $#given ) {
        my ( $got, $wanted ) = ( scalar @{ $given[$i] }, $inputs[$i]{size} );
        croak "$self->{name}: $inputs[$i]{name}: got $got numbers; expected $wanted"
          unless $got == $wanted;
        $self->_check_whole( $inputs[$i], $given[$i] ) if $inputs[$i]{bounds};
    }
    my @packed = map { pack "$inputs[$_]{letter}*", @{ $given[$_] } } 0 .. $#given;
    my @made   = $self->run_packed(@packed);
    my @lists  = map { [ unpack "$self->{outputs}[$_]{letter}*", $made[$_] ] } 0 .. $#made;
    return unless defined wantarray;
    return wantarray ? @lists : $self->_only(@lists);
}

# Refuse what `pack` would take for another number.
sub _check_whole {
    my ( $self, $wanted, $given ) = @_;
    my ( $least, $most ) = @{ $wanted->{bounds} };
    for my $i ( 0 .. $#$given ) {
        my $number = $given->[$i];
        next
          if looks_like_number($number)
          && $number >= $least
          && $number <= $most
          && $number == int $number;
        $number //= 'undef';
        croak "$self->{name}: $wanted->{name}: number $i is $number, which is no whole number of ",
          $wanted->{dtype};
    }
    return;
}

# Run the program on strings of bytes as `pack` makes them, and give such: nothing is copied.
sub run_packed {
    my $self = shift;
    $self->_known;
    my @inputs = @{ $self->{inputs} };
    croak "$self->{name}: got ", scalar @_, ' inputs; expected ', $self->describe
      unless @_ == @inputs;
    for my $i ( 0 .. $#inputs ) {
        croak "$self->{name}: $inputs[$i]{name}: expected $inputs[$i]{bytes} packed bytes"
          if !defined $_[$i] || utf8::is_utf8( $_[$i] ) || length $_[$i] != $inputs[$i]{bytes};
    }
    my @given = map { _address( $_[$_], $inputs[$_]{align} ) } 0 .. $#inputs;
    my @made  = map { _memory( $_->{bytes} ) } @{ $self->{outputs} };
    my $from  = pack 'J*', map { $_->[0] } @given;
    my $to    = pack 'J*', map { scalar_to_pointer($$_) } @made;
    my $code  = $self->{ask}->(
        run_with => $self->{number}, scalar_to_pointer($from), scalar_to_pointer($to),
        $self->{workspace}[0], $self->{pool}->address
    );
    croak "$self->{name}: ", $self->{ask}->( message => $self->{number}, $code ) if $code;
    return unless defined wantarray;
    return wantarray ? map { $$_ } @made : $self->_only( map { $$_ } @made );
}

# What a call in scalar context gives: the result, if there is one.
sub _only {
    my ( $self, @made ) = @_;
    croak "$self->{name}: gives ", scalar @made, ' arrays; assign them to a list' unless @made == 1;
    return $made[0];
}

sub describe {
    my ($self) = @_;
    my ( $inputs, $outputs ) = map {
        join ', ', map { "$_->{name}: $_->{dtype}\[" . join( ', ', @{ $_->{shape} } ) . ']' } @$_
    } @{$self}{qw(inputs outputs)};
    return "$self->{name}($inputs) -> ($outputs)";
}

sub _arrays {
    my ( $ask, $side, $number ) = @_;
    return [ map { _array( $ask, $side, $number, $_ ) } 0 .. $ask->( "${side}s", $number ) - 1 ];
}

sub _array {
    my ( $ask, $side, @where ) = @_;
    my $rank  = $ask->( "${side}_rank", @where );
    my @shape = map { _extent( $ask, $side, @where, $_ ) } 0 .. $rank - 1;
    my ( $dtype, $letter, $bytes ) = @{ $dtypes[ $ask->( "${side}_dtype", @where ) ] };
    my $size = product 1, grep { /^\d+$/ } @shape;    # of those that are known
    return {
        name  => $ask->( "${side}_name", @where ), dtype => $dtype, shape => \@shape,
        size  => $size, bytes => $size * $bytes, letter => $letter, align => $bytes,
        bounds => scalar _bounds( $letter, $bytes ),
    };
}

# The least and the largest whole number that a letter of pack takes; none for floats.
sub _bounds {
    my ( $letter, $bytes ) = @_;
    return if $letter =~ /[fd]/;
    my $most = ~0 >> ( 64 - 8 * $bytes );
    return [ 0, $most ] if $letter =~ /[A-Z]/;
    return [ -( $most >> 1 ) - 1, $most >> 1 ];
}

# An extent; what it is of sizes, as a text, where these are not known.
sub _extent {
    my ( $ask, $side, @where ) = @_;
    my $extent = $ask->( "${side}_extent", @where );
    return $extent < 0 ? $ask->( "${side}_extent_text", @where ) : $extent;
}

# The address of a string's bytes, and what must live on: a copy, if they begin at an odd place.
sub _address {
    my $address = scalar_to_pointer( $_[0] );
    return [ $address, \$_[0] ] unless $address % $_[1];
    my $copy = _memory( length $_[0] );
    substr $$copy, 0, length $_[0], $_[0];
    return [ scalar_to_pointer($$copy), $copy ];
}

# An address with so many bytes behind it, aligned, and the memory that it is in.
sub _aligned {
    my ($bytes) = @_;
    my $memory  = _memory( $bytes + ALIGNMENT );
    my $begin   = scalar_to_pointer($$memory);
    return [ $begin + -$begin % ALIGNMENT, $memory ];
}

# A string of so many bytes, to be written to, that shares them with no other.
sub _memory {
    my ($bytes) = @_;
    my $memory = '';
    grow $memory, $bytes || 1;
    set_used_length $memory, $bytes;
    return \$memory;
}

1;

__END__

=head1 NAME

Heterosis::Library - runs libraries that Heterosis has exported

=head1 SYNOPSIS

    use Heterosis::Library;
    my $mlp = Heterosis::Library->new('libmy_mlp.so');
    say $mlp->describe;
    my ($scores) = $mlp->entry->run( [ map { ( $_ % 7 ) / 7 } 0 .. 511 ] );
    my ($packed) = $mlp->entry->run_packed( pack 'f*', @x );

=cut
